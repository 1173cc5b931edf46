//! A case as a C program of its own, which says what is not as it should be.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::case::{
    Access, Case, Communicator, Direction, Family, Hints, How, MODES, Mode, Scope, Step, Whence,
};
use super::compare::step_name;
use super::print_type::Statements;
use super::record::{Value, Values};

/// What all programs begin with.
const PRELUDE: &str = include_str!("../../differential/standalone.h");

/// The program. `story` says what was found, and where.
pub(super) fn program(case: &Case, expected: &[Values], story: &str) -> String {
    let story = story.replace("*/", "* /").replace('\n', "\n * ");
    let ranks = case.ranks;
    let mut text = format!(
        "/* ranks: {ranks}\n *\n * {story}\n *\n * mpicc -o program program.c && mpirun -n {ranks} ./program DIRECTORY\n */\n{PRELUDE}\n"
    );
    for (number, step) in (1..).zip(&case.steps) {
        if matches!(step, Step::Access(_)) {
            let _ = writeln!(text, "static struct access access{number};");
        }
    }
    text += &main_head(case);
    let printer = Printer { case, expected };
    text += &printer.open_text();
    for number in 1..=case.steps.len() {
        text += &printer.step_text(number);
    }
    text += &printer.end_text();
    text += "    MPI_Finalize();\n    return wrong;\n}\n";
    text
}

fn main_head(case: &Case) -> String {
    let mut text = String::from(
        "\nint main(int argc, char **argv) {\n    int code, group_rank, color = 0;\n    char path[4096];\n    \
         MPI_Comm comm = MPI_COMM_WORLD;\n    MPI_Init(&argc, &argv);\n    \
         MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n    MPI_Comm_size(MPI_COMM_WORLD, &ranks);\n    \
         MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);\n",
    );
    let _ = writeln!(text, "    if (ranks != {}) MPI_Abort(comm, 2);", case.ranks);
    let communicator = match case.communicator {
        Communicator::World => "",
        Communicator::Own => "    color = rank;\n    MPI_Comm_dup(MPI_COMM_SELF, &comm);\n",
        Communicator::Dup => "    MPI_Comm_dup(MPI_COMM_WORLD, &comm);\n",
        Communicator::Halves => {
            "    color = rank >= (ranks + 1) / 2;\n    \
             MPI_Comm_split(MPI_COMM_WORLD, color, rank, &comm);\n"
        }
        Communicator::Reversed => "    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);\n",
    };
    text += communicator;
    text += "    MPI_Comm_rank(comm, &group_rank);\n    \
             snprintf(path, sizeof path, \"%s/file.%d\", argc > 1 ? argv[1] : \".\", color);\n    \
             if (group_rank == 0) unlink(path);\n";
    if let Some(fill) = &case.fill {
        let (bytes, salt) = (fill.bytes, fill.salt);
        let _ = writeln!(
            text,
            "    if (group_rank == 0) fill(path, {bytes}, {salt}u);"
        );
    }
    text += "    MPI_Barrier(MPI_COMM_WORLD);\n";
    text
}

struct Printer<'a> {
    case: &'a Case,
    expected: &'a [Values],
}

impl Printer<'_> {
    /// The same statements for all ranks, or a branch for each.
    fn each_rank(&self, statements: impl Fn(usize) -> String) -> String {
        let all: Vec<String> = (0..self.case.ranks).map(statements).collect();
        if all.iter().all(|it| it.is_empty()) {
            return String::new();
        }
        if all.iter().all(|it| *it == all[0]) {
            return format!("    {{\n{}    }}\n", indented(&all[0]));
        }
        let branches = all
            .iter()
            .enumerate()
            .map(|(rank, it)| format!("    if (rank == {rank}) {{\n{}    }}\n", indented(it)));
        branches.collect()
    }

    fn open_text(&self) -> String {
        let open = &self.case.open;
        self.each_rank(|rank| {
            let mut it = Statements::default();
            open_file(&mut it, &open.mode, &open.hints);
            self.check_class(&mut it, rank, 0, "open", "MPI_File_open");
            it.text
        }) + &self.pointers(0)
    }

    fn step_text(&self, number: usize) -> String {
        let step = &self.case.steps[number - 1];
        let name = step_name(self.case, number);
        let body = self.each_rank(|rank| self.statements(step, number, rank));
        let turns = match step {
            Step::Access(access) => {
                access.family == Family::Shared && access.scope == Scope::Independent
            }
            _ => false,
        };
        let body = if turns {
            format!(
                "    for (int turn = 0; turn < ranks; turn++) {{\n    MPI_Barrier(MPI_COMM_WORLD);\n    \
                 if (rank == turn) {{\n{body}    }}\n    }}\n"
            )
        } else {
            body
        };
        format!(
            "\n    /* Step {number}: {name} */\n{body}{}",
            self.pointers(number)
        )
    }

    fn statements(&self, step: &Step, number: usize, rank: usize) -> String {
        let mut it = Statements::default();
        let class = |it: &mut Statements, call: &str| {
            it.add(format!("code = MPI_File_{call};"));
            self.check_class(it, rank, number, "class", &step_name(self.case, number));
        };
        match step {
            Step::View(views, hints) => {
                let view = &views[rank];
                let etype = it.datatype(&view.etype);
                let filetype = it.datatype(&view.filetype);
                for name in [&etype, &filetype] {
                    if name.starts_with("type") {
                        it.add(format!("MPI_Type_commit(&{name});"));
                    }
                }
                let info = info(&mut it, hints);
                let at = view.displacement;
                class(
                    &mut it,
                    &format!("set_view(file, {at}, {etype}, {filetype}, \"native\", {info})"),
                );
            }
            Step::Access(access) => self.access(&mut it, access, number, rank),
            Step::Complete(method) => self.complete(&mut it, number, rank, method),
            Step::SplitEnd => self.complete(&mut it, number, rank, "end"),
            Step::Seek(seeks) => {
                let (offset, from) = seeks[rank];
                class(&mut it, &format!("seek(file, {offset}, {})", whence(from)));
            }
            Step::SeekShared(offset, from) => {
                class(
                    &mut it,
                    &format!("seek_shared(file, {offset}, {})", whence(*from)),
                );
            }
            Step::SetSize(size) => class(&mut it, &format!("set_size(file, {size})")),
            Step::Preallocate(size) => class(&mut it, &format!("preallocate(file, {size})")),
            Step::Sync => class(&mut it, "sync(file)"),
            Step::Atomicity(is_atomic) => {
                class(
                    &mut it,
                    &format!("set_atomicity(file, {})", u8::from(*is_atomic)),
                );
            }
            Step::Info(hints) => {
                let info = info(&mut it, hints);
                class(&mut it, &format!("set_info(file, {info})"));
            }
            Step::Extent(of) => {
                let name = it.datatype(of);
                it.add("MPI_Aint extent = -1;");
                class(&mut it, &format!("get_type_extent(file, {name}, &extent)"));
                if let Some(expected) = self.value(rank, number, "extent") {
                    it.add(format!(
                        "is_number({number}, \"extent\", extent, {expected});"
                    ));
                }
            }
            Step::Reopen(open) => {
                it.add("MPI_File_close(&file);");
                it.add("MPI_Barrier(MPI_COMM_WORLD);");
                open_file(&mut it, &open.mode, &open.hints);
                self.check_class(&mut it, rank, number, "open", "MPI_File_open");
            }
        }
        it.text
    }

    fn access(&self, it: &mut Statements, access: &Access, number: usize, rank: usize) {
        let part = &access.parts[rank];
        if !part.is_active {
            return;
        }
        let (memory, mine) = (part.memory(), format!("access{number}"));
        let name = it.datatype(&part.memory);
        it.add(format!(
            "prepare(&{mine}, {name}, {}, {}, {}, {}u);",
            part.count, memory.bytes, memory.origin, part.salt
        ));
        if part.is_absolute {
            it.add(format!("use_bottom(&{mine});"));
        }
        let function = access.name();
        let offset = match access.family {
            Family::Explicit => format!("{}, ", part.offset),
            Family::Individual | Family::Shared => String::new(),
        };
        let last = match access.how {
            How::Blocking => format!(", &{mine}.status"),
            How::Nonblocking => format!(", &{mine}.request"),
            How::Split => String::new(),
        };
        let call = |ending: &str| {
            format!(
                "code = MPI_File_{function}{ending}(file, {offset}{mine}.buffer, {mine}.count, {mine}.type{last});"
            )
        };
        if part.is_large {
            it.add("#if MPI_VERSION >= 4");
            it.add(call("_c"));
            it.add("#else");
            it.add(call(""));
            it.add("#endif");
        } else {
            it.add(call(""));
        }
        self.check_class(it, rank, number, "class", &function);
        if access.how == How::Blocking {
            self.check_data(it, rank, number);
        }
    }

    /// What is pending before the numbered step, latest first.
    fn pending(&self, number: usize) -> Vec<(usize, &Access)> {
        let mut pending = Vec::new();
        for before in (1..number).rev() {
            match &self.case.steps[before - 1] {
                Step::Complete(_) | Step::SplitEnd => break,
                Step::Access(access) if access.how != How::Blocking => {
                    pending.push((before, access));
                }
                _ => {}
            }
        }
        pending
    }

    fn complete(&self, it: &mut Statements, number: usize, rank: usize, method: &str) {
        let mut pending = self.pending(number);
        if method != "backwards" {
            pending.reverse();
        }
        pending.retain(|(_, access)| access.parts[rank].is_active);
        let names: Vec<String> = pending
            .iter()
            .map(|(step, _)| format!("access{step}"))
            .collect();
        match method {
            "end" | "wait" | "backwards" | "test" => {}
            _ => self.complete_together(it, &names, method),
        }
        for ((step, access), name) in pending.iter().zip(&names) {
            match method {
                "end" => {
                    let function = access.name().replace("_begin", "_end");
                    it.add(format!(
                        "code = MPI_File_{function}(file, {name}.buffer, &{name}.status);"
                    ));
                    self.check_class(it, rank, *step, "end", &function);
                }
                "test" => {
                    it.add("for (int done = 0; !done;)");
                    it.add(format!(
                        "    code = MPI_Test(&{name}.request, &done, &{name}.status);"
                    ));
                    self.check_class(it, rank, *step, "wait", "MPI_Test");
                }
                "wait" | "backwards" => {
                    it.add(format!("code = MPI_Wait(&{name}.request, &{name}.status);"));
                    self.check_class(it, rank, *step, "wait", "MPI_Wait");
                }
                _ => {}
            }
            self.check_data(it, rank, *step);
        }
    }

    /// `MPI_Waitall` and its relatives, over an array of the requests.
    fn complete_together(&self, it: &mut Statements, names: &[String], method: &str) {
        let many = names.len();
        if many == 0 {
            return;
        }
        let list: Vec<String> = names.iter().map(|it| format!("{it}.request")).collect();
        it.add(format!("MPI_Request requests[] = {{{}}};", list.join(", ")));
        it.add(format!("MPI_Status statuses[{many}];"));
        it.add("memset(statuses, 0, sizeof statuses);");
        let many_text = format!("{many}, requests");
        match method {
            "waitany" => {
                it.add(format!("for (int which, i = 0; i < {many}; i++) {{"));
                it.add("    MPI_Status status;");
                it.add(format!("    MPI_Waitany({many_text}, &which, &status);"));
                it.add("    statuses[which] = status;");
                it.add("}");
            }
            "waitsome" => {
                it.add(format!(
                    "for (int done = 0, some; done < {many}; done += some) {{"
                ));
                it.add(format!("    int which[{many}];"));
                it.add(format!("    MPI_Status these[{many}];"));
                it.add(format!(
                    "    MPI_Waitsome({many_text}, &some, which, these);"
                ));
                it.add("    for (int i = 0; i < some; i++) statuses[which[i]] = these[i];");
                it.add("}");
            }
            "testall" => {
                it.add("for (int done = 0; !done;)");
                it.add(format!("    MPI_Testall({many_text}, &done, statuses);"));
            }
            _ => it.add(format!("MPI_Waitall({many_text}, statuses);")),
        }
        for (at, name) in names.iter().enumerate() {
            it.add(format!("{name}.status = statuses[{at}];"));
        }
    }

    /// Pointers and size after a step.
    fn pointers(&self, number: usize) -> String {
        let checks = self.each_rank(|rank| {
            let mut it = Statements::default();
            for key in ["position", "byte_offset", "shared_position", "size"] {
                if let Some(expected) = self.value(rank, number, key) {
                    it.add(format!(
                        "is_number({number}, \"{key}\", {key}(), {expected});"
                    ));
                }
            }
            it.text
        });
        let barrier = "    MPI_Barrier(MPI_COMM_WORLD);\n";
        format!("{barrier}{checks}{barrier}")
    }

    fn end_text(&self) -> String {
        let number = self.case.steps.len() + 1;
        let mut text = String::from("\n");
        if self.value(0, number, "close").is_some() {
            text += "    code = MPI_File_close(&file);\n";
            let _ = writeln!(
                text,
                "    is_class({number}, \"close\", code, MPI_SUCCESS);"
            );
        }
        text += "    MPI_Barrier(MPI_COMM_WORLD);\n";
        text += &self.each_rank(|rank| match self.value(rank, number, "file") {
            Some(contents) => {
                format!("    is_file({number}, path, {});\n", literal(&contents))
            }
            None => String::new(),
        });
        text
    }

    fn value(&self, rank: usize, step: usize, key: &str) -> Option<String> {
        match self.expected[rank].get(&(step, key.to_owned()))? {
            Value::Word(word) => Some(word.clone()),
            Value::Open => None,
        }
    }

    fn check_class(&self, it: &mut Statements, rank: usize, step: usize, key: &str, what: &str) {
        if let Some(class) = self.value(rank, step, key) {
            let constant = match class.as_str() {
                "success" => "MPI_SUCCESS".to_owned(),
                class => format!("MPI_ERR_{class}"),
            };
            it.add(format!("is_class({step}, \"{what}\", code, {constant});"));
        }
    }

    fn check_data(&self, it: &mut Statements, rank: usize, step: usize) {
        let name = format!("access{step}");
        let numbers = BTreeMap::from([
            ("count", format!("count_of(&{name}, {name}.type)")),
            ("bytes", format!("count_of(&{name}, MPI_BYTE)")),
            ("elements", format!("elements_of(&{name})")),
        ]);
        for (key, found) in numbers {
            if let Some(expected) = self.value(rank, step, key) {
                it.add(format!(
                    "is_number({step}, \"{key}\", {found}, {expected});"
                ));
            }
        }
        let Step::Access(access) = &self.case.steps[step - 1] else {
            return;
        };
        let what = match access.direction {
            Direction::Read => "what was read",
            Direction::Write => "the memory that was written from",
        };
        if let Some(expected) = self.value(rank, step, "memory") {
            let bytes = access.parts[rank].memory().bytes;
            let expected = literal(&expected);
            it.add(format!(
                "are_bytes({step}, \"{what}\", {name}.memory, {bytes}, {expected});"
            ));
        }
    }
}

fn open_file(it: &mut Statements, mode: &Mode, hints: &Hints) {
    let names: Vec<&str> = MODES
        .iter()
        .filter(|(letter, _)| mode.has(*letter))
        .map(|(_, name)| *name)
        .collect();
    let info = info(it, hints);
    let mode = names.join(" | ");
    it.add(format!(
        "code = MPI_File_open(comm, path, {mode}, {info}, &file);"
    ));
}

/// Makes an info object; its name.
fn info(it: &mut Statements, hints: &Hints) -> &'static str {
    if hints.is_empty() {
        return "MPI_INFO_NULL";
    }
    it.add("MPI_Info info;");
    it.add("MPI_Info_create(&info);");
    for (key, value) in hints {
        it.add(format!("MPI_Info_set(info, \"{key}\", \"{value}\");"));
    }
    "info"
}

fn whence(from: Whence) -> &'static str {
    match from {
        Whence::Set => "MPI_SEEK_SET",
        Whence::Current => "MPI_SEEK_CUR",
        Whence::End => "MPI_SEEK_END",
    }
}

/// A string of C, in lines that can be read.
fn literal(text: &str) -> String {
    let bytes: Vec<char> = text.chars().collect();
    let lines = bytes.chunks(96).map(|line| {
        let line: String = line.iter().collect();
        format!("\"{line}\"")
    });
    lines.collect::<Vec<_>>().join("\n        ")
}

fn indented(text: &str) -> String {
    text.lines()
        .map(|line| {
            if line.trim_start().starts_with('#') {
                format!("{}\n", line.trim_start())
            } else {
                format!("    {line}\n")
            }
        })
        .collect()
}
