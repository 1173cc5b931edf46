//! Control messages, notes and data messages.

use std::collections::VecDeque;

use pario_exchange::{Buffer, Job, Kind, Message, Rank, Span, Tag};

use super::{Item, Token, Transit, World};

impl World<'_> {
    /// Puts an eager payload into a buffer of the receiver's.
    pub(super) fn land(&mut self, to: Rank, payload: Vec<Span>) -> Vec<Span> {
        if payload.is_empty() {
            return payload;
        }
        let buffer = Buffer {
            owner: to,
            kind: Kind::Arrival,
            index: self.arrivals,
        };
        self.arrivals += 1;
        self.arrived[to.index()] += 1;
        let tokens = self.gather(&payload);
        let range = 0..tokens.len() as u64;
        self.buffers.insert(buffer, tokens);
        vec![Span { buffer, range }]
    }

    pub(super) fn gather(&mut self, spans: &[Span]) -> Vec<Token> {
        let mut tokens = Vec::new();
        for span in spans {
            let range = span.range.start as usize..span.range.end as usize;
            tokens.extend_from_slice(&self.buffer(span.buffer)[range]);
        }
        tokens
    }

    pub(super) fn channel(&mut self, from: Rank, to: Rank) -> &mut VecDeque<(Message, Vec<Span>)> {
        let ranks = self.machines.len();
        &mut self.channels[from.index() * ranks + to.index()]
    }

    pub(super) fn tell(&mut self, from: Rank, to: Rank, message: Message, payload: Vec<Span>) {
        // Some go over the wire, to see that nothing gets lost there.
        if self.seen.events.is_multiple_of(32) {
            let wire = message.to_wire();
            assert_eq!(wire.len() as u64, message.wire_bytes());
            let read = Message::from_wire(&wire).map(|(read, _)| read);
            assert_eq!(read.as_ref(), Some(&message));
        }
        self.channel(from, to).push_back((message, payload));
        self.items.push(Item::Deliver { from, to });
    }

    pub(super) fn post(&mut self, to: Rank, from: Rank, tag: Tag, receive: (Job, Span)) {
        assert!(tag.0 < Tag::BOUND && self.case.setting.limits.tags.contains(&tag.0));
        let same = |at: &usize| {
            let it = &self.transits[*at];
            (it.from, it.to, it.tag) == (from, to, tag)
        };
        assert!(!self.posted.iter().any(same), "a tag is used twice");
        self.posted.push(self.transits.len());
        self.transits.push(Transit {
            from,
            to,
            tag,
            receive,
            send: None,
            is_copied: false,
            sent: false,
            received: false,
        });
    }

    pub(super) fn send(&mut self, from: Rank, to: Rank, tag: Tag, send: (Job, Span)) {
        if self.gone == Some(to) {
            return;
        }
        let matches = |at: &usize| {
            let it = &self.transits[*at];
            (it.from, it.to, it.tag) == (from, to, tag) && it.send.is_none()
        };
        let at = self.posted.iter().copied().find(matches);
        let at = at.expect("a message is sent when its receive is posted");
        assert_eq!(self.transits[at].receive.1.bytes(), send.1.bytes());
        self.transits[at].send = Some(send);
        if self.random.u8(0..4) == 0 {
            self.carry(at);
        }
        self.items.push(Item::Sent(at));
        self.items.push(Item::Received(at));
    }

    /// Moves a message's tokens: when it is sent, or as late as possible.
    pub(super) fn carry(&mut self, at: usize) {
        if std::mem::replace(&mut self.transits[at].is_copied, true) {
            return;
        }
        let (_, from) = self.transits[at].send.clone().unwrap();
        let (_, to) = self.transits[at].receive.clone();
        let tokens = self.gather(&[from]);
        let range = to.range.start as usize..to.range.end as usize;
        self.buffer(to.buffer)[range].copy_from_slice(&tokens);
    }
}
