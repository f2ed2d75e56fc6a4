//! Where a process keeps what must survive it.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Keeps one block of bytes. A save that returned survives the process.
pub trait Store: Send {
    /// What was saved last.
    fn load(&mut self) -> io::Result<Option<Vec<u8>>>;
    /// Replaces what was saved, whole or not at all.
    fn save(&mut self, bytes: &[u8]) -> io::Result<()>;
}

/// A file that is written under another name and then renamed.
pub struct FileStore {
    path: PathBuf,
    power_safe: bool,
}

impl FileStore {
    /// Keeps this file. With `power_safe` every save waits for the disk, so that it survives a
    /// power failure too.
    pub fn new(path: PathBuf, power_safe: bool) -> Self {
        Self { path, power_safe }
    }
}

impl Store for FileStore {
    fn load(&mut self) -> io::Result<Option<Vec<u8>>> {
        match std::fs::read(&self.path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn save(&mut self, bytes: &[u8]) -> io::Result<()> {
        let fresh = self.path.with_extension("new");
        let mut file = File::create(&fresh)?;
        file.write_all(bytes)?;
        if self.power_safe {
            file.sync_data()?;
        }
        std::fs::rename(&fresh, &self.path)?;
        if let (true, Some(folder)) = (self.power_safe, self.path.parent()) {
            File::open(folder)?.sync_all()?;
        }
        Ok(())
    }
}

/// Memory that outlives its users: for simulations.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore(Arc<Mutex<Option<Vec<u8>>>>);

impl Store for MemoryStore {
    fn load(&mut self) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn save(&mut self, bytes: &[u8]) -> io::Result<()> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(bytes.to_vec());
        Ok(())
    }
}
