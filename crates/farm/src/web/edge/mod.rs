//! The connection of a client: TLS, limits of time and memory, and the form of answers.

pub mod answer;
pub mod answer_budget;
pub mod answering;
pub mod asked_names;
pub mod connections;
pub mod counters;
pub mod paced_body;
pub mod refused_requests;
pub mod tls;
pub mod visitor;
