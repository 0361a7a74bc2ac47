//! A store that is killed, with its server, while boards send.

use std::thread;
use std::time::Duration;

use model::rng::SplitMix64;

use super::cluster::MadeCluster;
use super::server::Server;

/// Kills: those that the environment asks for, or a few.
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

    /// A server, in place of the one before; its address.
    pub fn start(&mut self) -> String {
        self.server = None;
        let server = Server::with(&self.store, &["--objects", &self.objects]);
        let address = server.address.clone();
        self.server = Some(server);
        address
    }

    /// Ends the server with SIGKILL, or its database with SIGKILL or at once, or both; where the
    /// server is then, if that is elsewhere.
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

    /// As it is told.
    pub fn name(&self) -> &'static str {
        if self.cluster.is_some() { "PostgreSQL" } else { "SQLite" }
    }
}
