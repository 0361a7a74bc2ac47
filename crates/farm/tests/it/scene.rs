//! A store that is killed, with its server, while boards send.

use std::thread;
use std::time::Duration;

use model::rng::SplitMix64;

use super::cluster::MadeCluster;
use super::server::Server;

/// Number of kills: from the environment, or a few.
pub fn kills_wanted(few: u64) -> u64 {
    std::env::var("ONBEAT_FARM_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(few)
}

pub fn below(draw: &mut SplitMix64, most: u64) -> u64 {
    draw.next_u64() % most.max(1)
}

/// A store to be killed, and its server.
pub struct Scene {
    pub store: String,
    objects: String,
    /// None for a store in a file.
    cluster: Option<MadeCluster>,
    server: Option<Server>,
    _folder: tempfile::TempDir,
}

impl Scene {
    pub fn new(cluster: Option<MadeCluster>) -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let file = format!("sqlite:{}", at("farm.db"));
        let store = cluster.as_ref().map_or(file, |cluster| cluster.url("public"));
        Scene { store, objects: at("objects"), cluster, server: None, _folder: folder }
    }

    /// Starts a server, replacing the previous one; returns its address.
    pub fn start(&mut self) -> String {
        self.server = None;
        let server = Server::with(&self.store, &["--objects", &self.objects]);
        let address = server.address.clone();
        self.server = Some(server);
        address
    }

    /// Ends the server with SIGKILL, or its database with SIGKILL or an immediate shutdown, or
    /// both; returns the server's address if that changed.
    pub fn kill(&mut self, draw: &mut SplitMix64) -> Option<String> {
        let of_database = self.cluster.as_ref().filter(|_| below(draw, 2) == 0);
        if let Some(cluster) = of_database {
            cluster.tell(if below(draw, 2) == 0 { "kill" } else { "stop" });
            thread::sleep(Duration::from_millis(below(draw, 60)));
            cluster.tell("start");
            if below(draw, 4) > 0 {
                return None;
            }
        }
        Some(self.start())
    }

    /// Displayed name.
    pub fn name(&self) -> &'static str {
        if self.cluster.is_some() { "PostgreSQL" } else { "SQLite" }
    }
}
