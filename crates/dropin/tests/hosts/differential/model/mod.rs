//! What the standard says that each rank must see: a file is a list of bytes, a type is its type map.
//!
//! Cases whose outcome the standard leaves open (overlapping writes, writing what is being read) are
//! rejected, so that whatever is left has one right answer.

mod access;
mod window;

use super::case::{Case, Direction, How, Mode, Open, Scope, Step, View, Whence, pattern};
use super::datatype::Leaf;
use super::record::{self, Value, Values};
use window::{Window, is_filetype};

/// Why a case has no single outcome, or is erroneous in a way that is not compared.
#[derive(Debug)]
pub(super) struct Rejected(pub(super) &'static str);

type Legal = Result<(), Rejected>;

#[derive(Clone)]
struct Pending {
    step: usize,
    direction: Direction,
    offsets: Vec<i64>,
    is_short: bool,
    is_growing: bool,
    /// The size of the file when the access started.
    size: i64,
    values: Vec<(&'static str, Value)>,
}

#[derive(Clone)]
struct Rank {
    window: Window,
    position: i64,
    pending: Vec<Pending>,
    values: Values,
}

/// A file and the ranks that share it.
#[derive(Clone)]
struct Group {
    members: Vec<usize>,
    contents: Option<Vec<u8>>,
    shared: i64,
}

/// All ranks in the middle of a case.
#[derive(Clone)]
pub(super) struct Model {
    ranks: Vec<Rank>,
    groups: Vec<Group>,
    mode: Option<Mode>,
    asks_shared: bool,
    step: usize,
    is_busy: bool,
    is_split: bool,
    is_short: bool,
}

/// The outcome of a whole case.
pub(super) fn outcome(case: &Case) -> Result<Vec<Values>, Rejected> {
    let mut model = Model::new(case)?;
    for step in &case.steps {
        model.take(step)?;
    }
    model.finish()
}

impl Model {
    /// After the file has been opened.
    pub(super) fn new(case: &Case) -> Result<Self, Rejected> {
        let contents = case.fill.as_ref().map(|fill| {
            let bytes = 0..fill.bytes;
            bytes.map(|at| pattern(fill.salt, at)).collect::<Vec<u8>>()
        });
        let groups = case.communicator.groups(case.ranks).into_iter();
        let mut model = Model {
            ranks: vec![
                Rank {
                    window: Window::bytes(),
                    position: 0,
                    pending: Vec::new(),
                    values: Values::new(),
                };
                case.ranks
            ],
            groups: groups
                .map(|members| Group {
                    members,
                    contents: contents.clone(),
                    shared: 0,
                })
                .collect(),
            mode: None,
            asks_shared: case.asks_shared,
            step: 0,
            is_busy: false,
            is_split: false,
            is_short: false,
        };
        model.open(&case.open)?;
        model.query();
        Ok(model)
    }

    pub(super) fn is_open(&self) -> bool {
        self.mode.is_some()
    }

    /// Whether the last step read past the end of a file.
    pub(super) fn is_short(&self) -> bool {
        self.is_short
    }

    pub(super) fn is_busy(&self) -> bool {
        self.is_busy
    }

    pub(super) fn is_split(&self) -> bool {
        self.is_split
    }

    pub(super) fn may(&self, letter: char) -> bool {
        self.mode.as_ref().is_some_and(|mode| mode.has(letter))
    }

    /// The type that data of this rank's view is made of, and the size of its etype.
    pub(super) fn etype(&self, rank: usize) -> (Leaf, i64) {
        let window = &self.ranks[rank].window;
        (window.view.etype.leaf(), window.etype)
    }

    /// Whether shared pointers may be used: they need equal views.
    pub(super) fn has_equal_views(&self) -> bool {
        self.groups.iter().all(|group| {
            let first = &self.ranks[group.members[0]].window.view;
            let mut others = group.members.iter();
            others.all(|rank| self.ranks[*rank].window.view == *first)
        })
    }

    fn put(&mut self, rank: usize, key: &str, word: impl ToString) {
        let key = (self.step, key.to_owned());
        let value = Value::Word(word.to_string());
        self.ranks[rank].values.insert(key, value);
    }

    fn put_all(&mut self, key: &str, word: &str) {
        for rank in 0..self.ranks.len() {
            self.put(rank, key, word);
        }
    }

    fn open(&mut self, open: &Open) -> Legal {
        let mode = &open.mode;
        let exists = self.groups[0].contents.is_some();
        let accesses = ['r', 'w', 'b'].into_iter().filter(|it| mode.has(*it));
        let class = if accesses.count() != 1
            || mode.has('r') && (mode.has('c') || mode.has('e'))
            || mode.has('b') && mode.has('s')
        {
            "AMODE"
        } else if !exists && !mode.has('c') {
            "NO_SUCH_FILE"
        } else if exists && mode.has('c') && mode.has('e') {
            "FILE_EXISTS"
        } else {
            "success"
        };
        self.put_all("open", class);
        if class != "success" {
            self.mode = None;
            return Ok(());
        }
        self.mode = Some(mode.clone());
        for group in &mut self.groups {
            let size = group.contents.get_or_insert_default().len() as i64;
            let start = if mode.has('a') { size } else { 0 };
            group.shared = start;
            for &rank in &group.members {
                self.ranks[rank].window = Window::bytes();
                self.ranks[rank].position = start;
            }
        }
        Ok(())
    }

    fn close(&mut self) {
        let Some(mode) = self.mode.take() else { return };
        self.put_all("close", "success");
        if mode.has('d') {
            for group in &mut self.groups {
                group.contents = None;
            }
        }
    }

    /// What the program asks for after every step.
    fn query(&mut self) {
        let Some(mode) = self.mode.clone() else {
            return;
        };
        for group in self.groups.clone() {
            let size = group.contents.as_ref().map_or(0, Vec::len);
            let first = group.members[0];
            for rank in group.members {
                if !mode.has('s') && !self.is_split {
                    let (position, window) = (self.ranks[rank].position, &self.ranks[rank].window);
                    let byte = window.offsets(position * window.etype, 1)[0];
                    self.put(rank, "position", position);
                    self.put(rank, "byte_offset", byte);
                }
                if self.asks_shared && !mode.has('s') && !self.is_busy {
                    self.put(rank, "shared_position", group.shared);
                }
                if !self.is_busy {
                    self.put(rank, "size", size);
                }
            }
            if !self.is_busy {
                let contents = group.contents.as_deref().unwrap_or_default();
                self.put(first, "contents", record::hash(contents));
            }
        }
    }

    /// Takes one step.
    pub(super) fn take(&mut self, step: &Step) -> Legal {
        self.step += 1;
        self.is_short = false;
        if self.mode.is_none() && !matches!(step, Step::Reopen(_)) {
            return Err(Rejected("the file is not open"));
        }
        if self.is_busy {
            self.legal_while_busy(step)?;
        }
        match step {
            Step::View(views, _) => self.set_views(views)?,
            Step::Access(access) => self.access(access)?,
            Step::Complete(_) => self.complete(How::Nonblocking, "wait")?,
            Step::SplitEnd => self.complete(How::Split, "end")?,
            Step::Seek(seeks) => self.seek(seeks)?,
            Step::SeekShared(offset, from) => self.seek_shared(*offset, *from)?,
            Step::SetSize(size) => self.resize(*size, |_, size| size)?,
            Step::Preallocate(size) => self.resize(*size, |old, size| old.max(size))?,
            Step::Sync | Step::Info(_) => self.put_all("class", "success"),
            Step::Atomicity(is_atomic) => {
                self.put_all("class", "success");
                self.put_all("atomicity", if *is_atomic { "1" } else { "0" });
            }
            Step::Extent(of) => {
                self.put_all("class", "success");
                self.put_all("extent", &of.layout().extent().to_string());
            }
            Step::Reopen(open) => {
                self.close();
                self.open(open)?;
            }
        }
        self.query();
        Ok(())
    }

    fn legal_while_busy(&self, step: &Step) -> Legal {
        let is_legal = match step {
            Step::Complete(_) => !self.is_split,
            Step::SplitEnd => self.is_split,
            Step::Seek(_) | Step::Extent(_) => true,
            Step::Access(access) if self.is_split => {
                access.how == How::Blocking && access.scope == Scope::Independent
            }
            Step::Access(access) => access.how != How::Split,
            _ => false,
        };
        is_legal
            .then_some(())
            .ok_or(Rejected("an operation is pending"))
    }

    fn set_views(&mut self, views: &[View]) -> Legal {
        if self.may('s') {
            return Err(Rejected("a sequential file has no such view"));
        }
        for (rank, view) in views.iter().enumerate() {
            let (etype, filetype) = (view.etype.layout(), view.filetype.layout());
            is_filetype(&filetype, &etype)?;
            self.ranks[rank].window = Window::new(view.clone());
            self.ranks[rank].position = 0;
            self.put(rank, "class", "success");
            self.put(rank, "view_displacement", view.displacement);
            for (name, layout) in [("etype", etype), ("filetype", filetype)] {
                self.put(rank, &format!("view_{name}_size"), layout.size());
                self.put(rank, &format!("view_{name}_extent"), layout.extent());
            }
        }
        for group in &mut self.groups {
            group.shared = 0;
        }
        Ok(())
    }

    /// A position that is asked for, in etypes; `None` is an error.
    fn target(
        &self,
        rank: usize,
        pointer: i64,
        offset: i64,
        from: Whence,
    ) -> Result<Option<i64>, Rejected> {
        let window = &self.ranks[rank].window;
        let base = match from {
            Whence::Set => 0,
            Whence::Current => pointer,
            Whence::End => {
                if self.is_busy {
                    return Err(Rejected("the end of the file is not known"));
                }
                let group = self.groups.iter().find(|it| it.members.contains(&rank));
                let contents = group.and_then(|group| group.contents.as_ref());
                let below = window.bytes_below(contents.map_or(0, |it| it.len() as i64));
                if below % window.etype != 0 {
                    return Err(Rejected("the file ends within an etype"));
                }
                below / window.etype
            }
        };
        let target = base + offset;
        Ok((target >= 0).then_some(target))
    }

    fn seek(&mut self, seeks: &[(i64, Whence)]) -> Legal {
        if self.may('s') {
            return Err(Rejected("a sequential file has no such pointer"));
        }
        for (rank, &(offset, from)) in seeks.iter().enumerate() {
            match self.target(rank, self.ranks[rank].position, offset, from)? {
                Some(target) => {
                    self.ranks[rank].position = target;
                    self.put(rank, "class", "success");
                }
                None => self.put(rank, "class", "ARG"),
            }
        }
        Ok(())
    }

    fn seek_shared(&mut self, offset: i64, from: Whence) -> Legal {
        if self.may('s') || !self.has_equal_views() {
            return Err(Rejected("the shared pointer cannot be moved here"));
        }
        for group in 0..self.groups.len() {
            let Group {
                members, shared, ..
            } = self.groups[group].clone();
            let class = match self.target(members[0], shared, offset, from)? {
                Some(target) => {
                    self.groups[group].shared = target;
                    "success"
                }
                None => "ARG",
            };
            for rank in members {
                self.put(rank, "class", class);
            }
        }
        Ok(())
    }

    fn resize(&mut self, size: i64, new: impl Fn(i64, i64) -> i64) -> Legal {
        if size < 0 {
            if self.may('r') || self.may('s') {
                return Err(Rejected("it is wrong in two ways"));
            }
            self.put_all("class", "ARG");
            return Ok(());
        }
        if self.may('s') {
            return Err(Rejected("a sequential file has no size to be set"));
        }
        if self.may('r') {
            self.put_all("class", "READ_ONLY");
            return Ok(());
        }
        for group in &mut self.groups {
            let contents = group.contents.get_or_insert_default();
            contents.resize(new(contents.len() as i64, size) as usize, 0);
        }
        self.put_all("class", "success");
        Ok(())
    }

    fn complete(&mut self, how: How, key: &str) -> Legal {
        if (how == How::Split) != self.is_split {
            return Err(Rejected("nothing of this kind is pending"));
        }
        for rank in &mut self.ranks {
            for pending in std::mem::take(&mut rank.pending) {
                let mut put = |key: &str, value| {
                    rank.values.insert((pending.step, key.to_owned()), value);
                };
                put(key, Value::Word("success".into()));
                for (key, value) in pending.values {
                    put(key, value);
                }
            }
        }
        self.is_busy = false;
        self.is_split = false;
        Ok(())
    }

    /// After the last step: the file is closed and looked at.
    pub(super) fn finish(mut self) -> Result<Vec<Values>, Rejected> {
        if self.is_busy {
            return Err(Rejected("something is pending at the end"));
        }
        self.step += 1;
        self.close();
        for group in self.groups.clone() {
            let word = match &group.contents {
                Some(contents) => record::bytes(contents),
                None => "absent".into(),
            };
            self.put(group.members[0], "file", word);
        }
        Ok(self.ranks.into_iter().map(|rank| rank.values).collect())
    }
}
