//! Box offices that no later step can tell apart, made equal.
//!
//! Request numbers are only compared: with other numbers of the same node and class. A number below the
//! one that the token has served says no more than that one, and a request that was served changes nothing
//! where it arrives. So numbers below are raised to it, such requests are dropped, and the rest is shifted
//! until the smallest is 0. Without that, no run of two nodes would ever repeat.

use super::Class;
use super::box_office::{BoxOffice, Config};
use super::flaw::Flaw;
use super::office::Office;
use super::token::{Table, Token};
use crate::UnderWay;

pub(super) fn canonical(
    nodes: &mut [BoxOffice],
    messages: &mut Vec<UnderWay<Office>>,
    config: &Config,
) {
    let Some(token) = the_token(nodes, messages) else {
        return;
    };
    let (served, turn) = (token.served.clone(), token.turn);
    for node in &mut *nodes {
        node.requested.raise(&served);
        if let Some((_, lent)) = &mut node.lent {
            forget_queries(lent, &served);
        }
        if !config.has(Flaw::AsksOthers) {
            node.last = Class::Query;
        }
        if !config.has(Flaw::RingFromHolder) {
            // It starts again at 0 with the next turn.
            for (burst, turn) in node.burst.iter_mut().zip(turn) {
                *burst *= u32::from(turn == node.id);
            }
        }
    }
    messages.retain_mut(|flight| match &mut flight.message {
        Office::Request(class, number) => *number > served.at(*class, flight.from),
        Office::Token(_, requested) => {
            requested.raise(&served);
            true
        }
        Office::QueryToken(lent) => {
            let theirs = lent.at(Class::Query, flight.to);
            forget_queries(lent, &served);
            lent.set(Class::Query, flight.to, theirs);
            true
        }
        Office::QueryReturn => true,
    });
    let mut least = served;
    numbers(nodes, messages, &mut |node, class, number| {
        let least = &mut least.0[node][class];
        *least = (*least).min(*number);
    });
    numbers(nodes, messages, &mut |node, class, number| {
        *number -= least.0[node][class];
    });
}

fn the_token<'a>(nodes: &'a [BoxOffice], messages: &'a [UnderWay<Office>]) -> Option<&'a Token> {
    let held = nodes.iter().find_map(|node| node.token.as_ref());
    held.or_else(|| {
        messages.iter().find_map(|flight| match &flight.message {
            Office::Token(token, _) => Some(token),
            _ => None,
        })
    })
}

/// Whoever has a query token looks only at writers in the table that came with it.
fn forget_queries(lent: &mut Table, served: &Table) {
    for (lent, served) in lent.0.iter_mut().zip(&served.0) {
        lent[Class::Query.index()] = served[Class::Query.index()];
    }
}

/// Shows every request number, with its node and class.
fn numbers(
    nodes: &mut [BoxOffice],
    messages: &mut [UnderWay<Office>],
    visit: &mut dyn FnMut(usize, usize, &mut u32),
) {
    let mut table = |table: &mut Table| {
        for (node, row) in table.0.iter_mut().enumerate() {
            for (class, number) in row.iter_mut().enumerate() {
                visit(node, class, number);
            }
        }
    };
    for node in &mut *nodes {
        table(&mut node.requested);
        if let Some(token) = &mut node.token {
            table(&mut token.served);
        }
        if let Some((_, lent)) = &mut node.lent {
            table(lent);
        }
    }
    for flight in &mut *messages {
        match &mut flight.message {
            Office::Token(token, requested) => {
                table(&mut token.served);
                table(requested);
            }
            Office::QueryToken(lent) => table(lent),
            Office::Request(..) | Office::QueryReturn => {}
        }
    }
    for node in nodes {
        let id = node.id.index();
        for (class, number) in node.served.iter_mut().enumerate() {
            visit(id, class, number);
        }
    }
    for flight in messages {
        if let Office::Request(class, number) = &mut flight.message {
            visit(flight.from.index(), class.index(), number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readers::box_office::two_nodes;
    use crate::{NodeId, Protocol};

    fn request(number: u32) -> UnderWay<Office> {
        UnderWay {
            from: NodeId(1),
            to: NodeId(0),
            message: Office::Request(Class::Reservation, number),
            place: 0,
        }
    }

    /// Node 1 has asked for the fifth time, and was served four times.
    fn late(config: &Config) -> [BoxOffice; 2] {
        let mut nodes = [0, 1].map(|id| BoxOffice::new(NodeId(id), config));
        let token = nodes[0].token.as_mut().expect("it starts at node 0");
        token.served.set(Class::Reservation, NodeId(1), 4);
        nodes[0].requested.set(Class::Reservation, NodeId(1), 3);
        nodes[1].requested.set(Class::Reservation, NodeId(1), 5);
        nodes[1].served[1] = 4;
        nodes
    }

    #[test]
    fn numbers_are_shifted_and_served_requests_are_dropped() {
        let config = two_nodes();
        let mut nodes = late(&config);
        let mut messages = vec![request(2), request(4), request(5)];
        canonical(&mut nodes, &mut messages, &config);
        assert_eq!(messages, [request(1)]);
        let known = |node: usize| nodes[node].requested.at(Class::Reservation, NodeId(1));
        assert_eq!([known(0), known(1), nodes[1].served[1]], [0, 1, 0]);
        let again = nodes.clone();
        canonical(&mut nodes, &mut messages, &config);
        assert_eq!(nodes, again);
    }

    #[test]
    fn a_token_under_way_says_what_was_served() {
        let config = two_nodes();
        let mut nodes = late(&config);
        let token = nodes[0].token.take().expect("it starts at node 0");
        let flight = UnderWay {
            from: NodeId(0),
            to: NodeId(1),
            message: Office::Token(token, nodes[0].requested.clone()),
            place: 1,
        };
        let mut messages = vec![request(4), flight];
        canonical(&mut nodes, &mut messages, &config);
        let Office::Token(token, requested) = &messages[0].message else {
            panic!("the request was served: {messages:?}");
        };
        let of = |table: &Table| table.at(Class::Reservation, NodeId(1));
        assert_eq!(
            [of(&token.served), of(requested), of(&nodes[1].requested)],
            [0, 0, 1]
        );
    }

    #[test]
    fn only_whose_turn_it_is_counts_its_burst() {
        let config = two_nodes();
        let mut nodes = late(&config);
        let token = nodes[0].token.as_mut().expect("it starts at node 0");
        token.turn = [NodeId(0), NodeId(1)];
        nodes[0].burst = [1, 1];
        nodes[1].burst = [1, 1];
        canonical(&mut nodes, &mut Vec::new(), &config);
        assert_eq!([nodes[0].burst, nodes[1].burst], [[1, 0], [0, 1]]);
    }

    /// What was lent is compared with writers; how many queries were served by then, nobody asks again.
    #[test]
    fn a_query_token_keeps_what_its_receiver_will_look_at() {
        let config = two_nodes();
        let mut nodes = late(&config);
        let mut served = nodes[0].token.clone().expect("it starts at node 0").served;
        served.set(Class::Query, NodeId(0), 2);
        let lent = Office::QueryToken(Table(vec![[0, 0, 1], [0, 4, 0]]));
        let mut messages = vec![UnderWay {
            from: NodeId(0),
            to: NodeId(1),
            message: lent,
            place: 0,
        }];
        nodes[0].token.as_mut().expect("still there").served = served;
        canonical(&mut nodes, &mut messages, &config);
        let alike = Office::QueryToken(Table(vec![[0, 0, 2], [0, 0, 0]]));
        let base = nodes[0].served[2];
        assert_eq!(base, 0, "node 0 has not served itself");
        assert_eq!(messages[0].message, alike);
    }
}
