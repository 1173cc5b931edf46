//! Test programs: what they say about themselves, and compiling them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::host::{Host, Language};
use crate::job::{self, Line};
use crate::library::target_directory;
use crate::place::Ground;
use crate::run::TestResult;

/// The lines of a program that may say what it needs.
const HEADER_LINES: usize = 20;

/// A compiler that takes longer hangs.
const COMPILE_LIMIT: Duration = Duration::from_secs(120);

/// What a program needs from its surroundings, as its `needs:` line says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Need {
    /// Its directory is on a disk.
    Disk,
    /// A small file system, which it fills.
    FullFileSystem,
    /// A file system that cannot be written.
    ReadOnlyFileSystem,
    /// A host with MPI 4's sessions.
    Sessions,
    /// A host with Fortran bindings.
    Fortran,
    /// A host with the Fortran module mpi_f08.
    Fortran2008,
    /// A host with C++ bindings.
    Cxx,
    /// Not a program but a library that is preloaded.
    Tool,
    /// Time: only in the full matrix.
    Long,
}

/// The words of `needs:` lines.
const NEEDS: [(&str, Need); 9] = [
    ("disk", Need::Disk),
    ("full-fs", Need::FullFileSystem),
    ("readonly-fs", Need::ReadOnlyFileSystem),
    ("sessions", Need::Sessions),
    ("fortran", Need::Fortran),
    ("f08", Need::Fortran2008),
    ("cxx", Need::Cxx),
    ("tool", Need::Tool),
    ("long", Need::Long),
];

/// A source file.
#[derive(Clone)]
pub(crate) struct Program {
    pub(crate) name: String,
    source: PathBuf,
    language: Language,
    pub(crate) ranks: Vec<u32>,
    pub(crate) needs: Vec<Need>,
}

/// All programs of a directory below `tests`, by name. One that says nonsense about itself does not
/// keep the others from running.
pub(crate) fn all(directory: &str) -> TestResult<Vec<TestResult<Program>>> {
    let directory = directory_of(directory);
    let entries = fs::read_dir(&directory)
        .map_err(|error| format!("cannot read {}: {error}", directory.display()))?;
    let mut sources = Vec::new();
    for entry in entries {
        let source = entry.map_err(|error| error.to_string())?.path();
        if let Some(language) = language(&source) {
            sources.push((source, language));
        }
    }
    sources.sort_by(|(one, _), (other, _)| one.cmp(other));
    let programs = sources.into_iter();
    Ok(programs
        .map(|(source, language)| Program::read(source, language))
        .collect())
}

fn directory_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(name)
}

fn language(source: &Path) -> Option<Language> {
    match source.extension()?.to_str()? {
        "c" => Some(Language::C),
        "cc" => Some(Language::Cxx),
        "f" | "f90" | "F90" => Some(Language::Fortran),
        _ => None,
    }
}

impl Program {
    /// A C program of a directory below `tests`.
    pub(crate) fn find(directory: &str, name: &str) -> TestResult<Program> {
        Program::find_file(directory, &format!("{name}.c"))
    }

    /// The program of a source file in a directory below `tests`.
    pub(crate) fn find_file(directory: &str, file: &str) -> TestResult<Program> {
        let source = directory_of(directory).join(file);
        let language = language(&source).ok_or_else(|| format!("{file} is not a program"))?;
        Program::read(source, language)
    }

    /// The C program of a source file anywhere.
    pub(crate) fn at(source: PathBuf) -> TestResult<Program> {
        Program::read(source, Language::C)
    }

    fn read(source: PathBuf, language: Language) -> TestResult<Self> {
        let text = fs::read_to_string(&source)
            .map_err(|error| format!("cannot read {}: {error}", source.display()))?;
        let name = source.file_stem().expect("it has an extension");
        let name = name.to_string_lossy().into_owned();
        let (ranks, needs) = header(&text).map_err(|reason| format!("{name}: {reason}"))?;
        Ok(Program {
            name,
            source,
            language,
            ranks,
            needs,
        })
    }

    pub(crate) fn needs(&self, need: Need) -> bool {
        self.needs.contains(&need)
    }

    pub(crate) fn ground(&self) -> Ground {
        if self.needs(Need::Disk) {
            Ground::Disk
        } else {
            Ground::Memory
        }
    }

    /// Why it cannot be compiled for a host or run under it.
    pub(crate) fn obstacle(&self, host: &Host) -> Option<&'static str> {
        self.needs.iter().find_map(|need| host.lack(*need))
    }

    /// The program compiled for a host. `flags` are those of libraries it is linked with.
    pub(crate) fn compile(&self, host: &Host, flags: &[String]) -> TestResult<PathBuf> {
        let directory = target_directory().join("programs").join(host.name);
        fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
        let binary = directory.join(&self.name);
        let compiler = host
            .compiler(self.language)
            .ok_or_else(|| format!("{} has no compiler for {}", host.name, self.name))?;
        let mut line = Line {
            // Libraries follow what needs them.
            words: vec![compiler.words[0].clone()],
            variables: Vec::new(),
        };
        line = line.words(["-O1", "-g"]).word(&self.source);
        // Libraries of the test's come before the MPI's.
        line = line.word("-o").word(&binary).words(flags);
        line = line.words(&compiler.words[1..]);
        line = match self.language {
            Language::C => line.words(["-std=gnu11", "-pthread", "-ldl", "-lm"]),
            Language::Cxx => line.words(["-std=gnu++11", "-pthread", "-ldl"]),
            Language::Fortran => {
                // A directory for each program: their modules may have the same names.
                let modules = directory.join(format!("{}.modules", self.name));
                fs::create_dir_all(&modules).map_err(|error| error.to_string())?;
                // mpif.h has no interfaces, so buffers of several types meet one function.
                line.words(["-fallow-argument-mismatch", "-J"])
                    .word(modules)
            }
        };
        if self.needs(Need::Tool) {
            line = line.words(["-shared", "-fPIC"]);
        }
        let inputs = self.inputs(&line)?;
        let stamp = directory.join(format!("{}.inputs", self.name));
        if binary.exists() && fs::read(&stamp).is_ok_and(|stored| stored == inputs) {
            return Ok(binary);
        }
        job::run(&line, COMPILE_LIMIT)?.success()?;
        fs::write(&stamp, inputs).map_err(|error| error.to_string())?;
        Ok(binary)
    }

    /// All that the compiled program depends on: it is compiled again when this changes.
    fn inputs(&self, line: &Line) -> TestResult<Vec<u8>> {
        let mut inputs = Vec::new();
        for word in &line.words {
            inputs.extend_from_slice(word.as_encoded_bytes());
            inputs.push(b'\n');
        }
        let directory = self.source.parent().expect("a file is in a directory");
        let mut sources = vec![self.source.clone()];
        let entries = fs::read_dir(directory).map_err(|error| error.to_string())?;
        let mut headers: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| {
                path.extension()
                    .is_some_and(|kind| kind == "h" || kind == "inc")
            })
            .collect();
        headers.sort();
        sources.extend(headers);
        for source in sources {
            inputs.extend(fs::read(&source).map_err(|error| error.to_string())?);
        }
        Ok(inputs)
    }
}

/// The `ranks:` and `needs:` lines at the top of a program.
fn header(text: &str) -> TestResult<(Vec<u32>, Vec<Need>)> {
    let (mut ranks, mut needs) = (Vec::new(), Vec::new());
    for line in text.lines().take(HEADER_LINES) {
        if let Some(words) = words_after(line, "ranks:") {
            for word in words {
                let number = word.parse();
                ranks.push(number.map_err(|_| format!("`{word}` is not a number of ranks"))?);
            }
        }
        if let Some(words) = words_after(line, "needs:") {
            for word in words {
                let need = NEEDS.iter().find(|(name, _)| *name == word);
                needs.push(need.ok_or_else(|| format!("unknown need `{word}`"))?.1);
            }
        }
    }
    if ranks.is_empty() && !needs.contains(&Need::Tool) {
        return Err("it has no line `ranks: 1 2 ...` at its top".into());
    }
    Ok((ranks, needs))
}

fn words_after<'a>(line: &'a str, key: &str) -> Option<impl Iterator<Item = &'a str>> {
    let line = line.trim_start_matches(['/', '*', '!', ' ']);
    let rest = line.strip_prefix(key)?;
    let rest = rest.trim_end().trim_end_matches("*/");
    Some(rest.split_whitespace())
}
