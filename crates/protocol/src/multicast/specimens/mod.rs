//! Multicasts kept in order to be refuted: each claims what it breaks, and the checker must find the
//! schedule that shows it.

use super::Multicast;

crate::registry::family! { Multicast:
    basic_agreeing,
    reliable_deliver_first,
    nack_from_zero,
    nack_silent,
    fifo_unheld,
    causal_own_copy,
    isis_ties,
    sequencer_unnumbered,
}
