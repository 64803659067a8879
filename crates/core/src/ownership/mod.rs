//! Who owns what: the only code in which an owner changes. A name belongs to a *shard*; a shard has a *title*: its owner, the
//! owner's start, and a *number* that rises with every title. Titles change in log order, in two ways: a *view* gives members
//! the shards of starts that have left, and a hand-over gives shards from their owner to a member.

mod node;
mod one_owner;
mod shard;
mod title;
mod view;

pub use node::{NODES_MAX, NodeId, Start};
pub use one_owner::OneOwner;
pub use shard::Shard;
pub use title::{Number, Ownership, Span, Title};
pub use view::{Index, Member, Origin, View};
