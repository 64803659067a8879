//! The options of a node whose pools a Corosync group shares.

use clap::Args;
use testigo_node::{CorosyncConfig, Settings};

/// What makes a Corosync group share the pools.
#[derive(Args, Clone)]
#[command(next_help_heading = "Pools on Corosync")]
pub(super) struct CorosyncGroup {
    /// Share the pools in this Corosync process group, in place of the log; needs a build with the feature corosync
    #[arg(
        long,
        value_name = "GROUP",
        num_args = 0..=1,
        default_missing_value = "testigo",
        requires = "corosync_members"
    )]
    corosync: Option<String>,
    /// The Corosync node ids of all members of the group, the same at all of them
    #[arg(long, value_name = "N,N,…", value_delimiter = ',')]
    corosync_members: Option<Vec<u32>>,
}

impl CorosyncGroup {
    /// What the command line says goes before what the file says.
    pub(super) fn config(&self, settings: &Settings) -> Option<CorosyncConfig> {
        let group = self.corosync.as_ref().or(settings.corosync.as_ref())?;
        let members = self.corosync_members.as_ref();
        let members = members.or(settings.corosync_members.as_ref());
        Some(CorosyncConfig {
            group: group.clone(),
            members: members.cloned().unwrap_or_default(),
        })
    }
}
