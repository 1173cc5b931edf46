//! The clients of this process: one per account, however many files are open.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, Weak},
};

use super::library::{Account, Client};
use crate::{closing::lock, per_process::PerProcess};

/// Clients that are in use. A client that is not used any more is unmounted: its
/// capabilities would delay others that open its files.
static CLIENTS: PerProcess<Mutex<HashMap<Account, Weak<Client>>>> = PerProcess::new();

/// The client of an account, mounted now unless it exists.
fn get(account: &Account) -> io::Result<Arc<Client>> {
    // Locked while mounting, so that threads that open files at the same time
    // share a client.
    let mut clients = lock(CLIENTS.get_or_make(Mutex::default));
    let found = clients.get(account).and_then(Weak::upgrade);
    if let Some(client) = found.filter(|client| !client.is_evicted()) {
        return Ok(client);
    }
    let client = Arc::new(Client::mount(account)?);
    clients.insert(account.clone(), Arc::downgrade(&client));
    Ok(client)
}

/// Clients that are kept until this is dropped, each from its first use on.
#[derive(Default)]
pub(super) struct KeptClients {
    kept: Mutex<HashMap<Account, Arc<Client>>>,
}

impl KeptClients {
    /// The client of an account; a new one if that of before has been evicted or
    /// belongs to another process.
    pub(super) fn get(&self, account: &Account) -> io::Result<Arc<Client>> {
        let kept = lock(&self.kept).get(account).cloned();
        if let Some(client) = kept.filter(|it| it.belongs_here() && !it.is_evicted()) {
            return Ok(client);
        }
        let client = get(account)?;
        let before = lock(&self.kept).insert(account.clone(), client.clone());
        // Unlocked: this may unmount.
        drop(before);
        Ok(client)
    }
}
