//! The tables of constants agree with the headers of the MPIs that are installed.

mod common;

use std::fmt::Write;
use std::fs;
use std::process::Command;

use common::{Compiler, compilers, skipped};
use pario_mpi::host::combiner::Combiner;
use pario_mpi::host::constants::{Constants, Predefined};
use pario_mpi::host::named_types::NamedType;
use pario_mpi::{ErrorClass, Flavour};

/// The beginning of a C program that prints its flavour's place in [`Flavour::ALL`].
const FLAVOUR: &str = "int main(void) {\n\
    #ifdef OPEN_MPI\nputs(\"flavour 1\");\n\
    #elif defined MPI_ABI_VERSION\nputs(\"flavour 2\");\n\
    #else\nputs(\"flavour 0\");\n#endif\n";

/// The beginning of a C program that prints numbers and handles.
///
/// Predefined handles of Open MPI are addresses: for those it prints the symbol. Elsewhere they
/// may be C integers, whose sign means nothing.
fn prelude(header: &str) -> String {
    format!(
        "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdio.h>\n#include <stddef.h>\n\
         #include <{header}>\n\
         #define NUMBER(x) printf(\"%s %lld\\n\", #x, (long long)(x));\n\
         #define HANDLE(x) handle(#x, sizeof(x) == 4 ? (unsigned)(size_t)(x) \\\n: (size_t)(x));\n\
         static void handle(const char *name, size_t value) {{\n\
         #ifdef OPEN_MPI\n\
         Dl_info info; void *symbol = (void *)value;\n\
         if (!dladdr(symbol, &info) || !info.dli_sname) printf(\"%s ?\\n\", name);\n\
         else printf(\"%s %s\\n\", name, info.dli_sname);\n\
         #else\n\
         printf(\"%s %zu\\n\", name, value);\n\
         #endif\n}}\n\
         {FLAVOUR}"
    )
}

/// A C program that prints `name value` for everything in the tables of constants.
fn program(header: &str) -> String {
    let mut text = prelude(header);
    let mut line = |line: String| writeln!(text, "{line}").expect("strings take everything");
    for (name, _) in Constants::TABLE {
        line(format!("NUMBER({name})"));
    }
    for class in ErrorClass::ALL {
        line(format!("NUMBER({})", class.name()));
    }
    for (name, ..) in Predefined::TABLE {
        line(format!("HANDLE({name})"));
    }
    for field in ["MPI_SOURCE", "MPI_TAG", "MPI_ERROR"] {
        line(format!("NUMBER(offsetof(MPI_Status, {field}))"));
    }
    for object in [
        "Status", "Comm", "Datatype", "Request", "File", "Aint", "Offset", "Count",
    ] {
        line(format!("NUMBER(sizeof(MPI_{object}))"));
    }
    line("return 0; }".to_owned());
    text
}

/// What the program printed, by name.
struct Printed(Vec<(String, String)>);

impl Printed {
    fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(known, _)| known == name);
        &found
            .unwrap_or_else(|| panic!("the program did not print {name}"))
            .1
    }

    fn number(&self, name: &str) -> i64 {
        self.get(name).parse().expect("a number")
    }
}

/// Compiles and runs a program; none if it does not compile.
fn run(compiler: &Compiler, source: &str) -> Result<Printed, String> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (file, executable) = (
        directory.path().join("print.c"),
        directory.path().join("print"),
    );
    fs::write(&file, source).expect("the directory is writable");
    let [cc, flags @ ..] = &compiler.command[..] else {
        panic!("a compiler has a name");
    };
    let mut compile = Command::new(cc);
    compile
        .arg("-w")
        .arg("-o")
        .arg(&executable)
        .arg(&file)
        .args(flags)
        .arg("-ldl");
    let compiled = compile.output().map_err(|error| error.to_string())?;
    if !compiled.status.success() {
        return Err(String::from_utf8_lossy(&compiled.stderr).into_owned());
    }
    let mut run = Command::new(&executable);
    if let Some(directory) = &compiler.library_directory {
        run.env("LD_LIBRARY_PATH", directory);
    }
    let output = run.output().map_err(|error| error.to_string())?;
    assert!(output.status.success(), "{}: {output:?}", compiler.name);
    let text = String::from_utf8(output.stdout).expect("the program prints ASCII");
    let pairs = text.lines().map(|line| {
        let (name, value) = line.rsplit_once(' ').expect("each line has a value");
        (name.to_owned(), value.to_owned())
    });
    Ok(Printed(pairs.collect()))
}

fn compare(printed: &Printed) -> Flavour {
    let flavour = Flavour::ALL[printed.number("flavour") as usize];
    let column = printed.number("flavour") as usize;
    for (name, values) in Constants::TABLE {
        assert_eq!(
            printed.number(name),
            values[column],
            "{name} of {flavour:?}"
        );
    }
    for class in ErrorClass::ALL {
        let (name, number) = (class.name(), i64::from(class.number(flavour)));
        assert_eq!(printed.number(name), number, "{name} of {flavour:?}");
    }
    for (name, mpich, symbol, standard) in Predefined::TABLE {
        let value = printed.get(name);
        match flavour {
            Flavour::Mpich => assert_eq!(value, mpich.to_string(), "{name}"),
            Flavour::OpenMpi => assert_eq!(value, *symbol, "{name}"),
            Flavour::Standard => assert_eq!(value, standard.to_string(), "{name}"),
        }
    }
    let status = flavour.status();
    let sizes = [
        ("offsetof(MPI_Status, MPI_SOURCE)", status.source),
        ("offsetof(MPI_Status, MPI_TAG)", status.tag),
        ("offsetof(MPI_Status, MPI_ERROR)", status.error),
        ("sizeof(MPI_Status)", status.size),
        ("sizeof(MPI_Comm)", flavour.handle_bytes()),
        ("sizeof(MPI_Datatype)", flavour.handle_bytes()),
        ("sizeof(MPI_Request)", flavour.handle_bytes()),
        ("sizeof(MPI_File)", size_of::<u64>()),
        ("sizeof(MPI_Aint)", size_of::<i64>()),
        ("sizeof(MPI_Offset)", size_of::<i64>()),
        ("sizeof(MPI_Count)", size_of::<i64>()),
    ];
    for (name, size) in sizes {
        assert_eq!(printed.number(name), size as i64, "{name} of {flavour:?}");
    }
    flavour
}

#[test]
fn constants_agree_with_the_headers() {
    for compiler in compilers() {
        match run(&compiler, &program(compiler.header)) {
            Ok(printed) => {
                let flavour = compare(&printed);
                println!("{}: {} agrees", compiler.name, flavour.name());
            }
            Err(reason) => skipped(&compiler.name, &reason),
        }
    }
}

/// Some headers lack constructors of others: each is compared where it is defined.
#[test]
fn constructors_agree_with_the_headers() {
    for compiler in compilers() {
        let mut wanted = Combiner::ALL.to_vec();
        let mut outcome = run(&compiler, &constructors(&compiler, &wanted));
        if let Err(message) = &outcome {
            wanted.retain(|combiner| !is_absent(combiner.name(), message));
            outcome = run(&compiler, &constructors(&compiler, &wanted));
        }
        let printed = match outcome {
            Ok(printed) => printed,
            Err(reason) => {
                skipped(&compiler.name, &reason);
                continue;
            }
        };
        let flavour = Flavour::ALL[printed.number("flavour") as usize];
        for combiner in &wanted {
            let number = combiner.number(flavour).map(i64::from);
            let name = combiner.name();
            assert_eq!(Some(printed.number(name)), number, "{name} of {flavour:?}");
        }
        println!("{}: {} constructors agree", compiler.name, wanted.len());
    }
}

/// A C program that prints the numbers of constructors.
fn constructors(compiler: &Compiler, wanted: &[Combiner]) -> String {
    let mut text = format!(
        "#include <{}>\n#include <stdio.h>\n\
         #define NUMBER(x) printf(\"%s %d\\n\", #x, (int)(x));\n{FLAVOUR}",
        compiler.header
    );
    for combiner in wanted {
        writeln!(text, "NUMBER({})", combiner.name()).expect("strings take everything");
    }
    text + "return 0; }\n"
}

/// Whether a compiler's message complains of a name: it repeats the line at fault.
fn is_absent(name: &str, message: &str) -> bool {
    let lines = [format!("NUMBER({name})"), format!("HANDLE({name})")];
    lines.iter().any(|line| message.contains(line))
}

/// Predefined datatypes: each is compared where it is defined.
#[test]
fn datatypes_agree_with_the_headers() {
    for compiler in compilers() {
        let mut wanted: Vec<NamedType> = NamedType::ALL.to_vec();
        let source = |wanted: &[NamedType]| {
            let mut text = prelude(compiler.header);
            for named in wanted {
                writeln!(text, "HANDLE({})", named.name).expect("strings take everything");
            }
            text + "return 0; }\n"
        };
        let mut outcome = run(&compiler, &source(&wanted));
        if let Err(message) = &outcome {
            wanted.retain(|named| !is_absent(named.name, message));
            outcome = run(&compiler, &source(&wanted));
        }
        let printed = match outcome {
            Ok(printed) => printed,
            Err(reason) => {
                skipped(&compiler.name, &reason);
                continue;
            }
        };
        let flavour = Flavour::ALL[printed.number("flavour") as usize];
        let number = |raw: Option<u64>| raw.map(|raw| raw.to_string());
        for named in &wanted {
            let expected = match flavour {
                Flavour::Mpich => number(named.mpich),
                Flavour::OpenMpi => named.symbol.map(str::to_owned),
                Flavour::Standard => number(named.standard),
            };
            let value = printed.get(named.name);
            // Headers define types that the MPI was built without as the null type.
            if value != "201326592" {
                assert_eq!(
                    Some(value),
                    expected.as_deref(),
                    "{} of {flavour:?}",
                    named.name
                );
            }
        }
        println!("{}: {} datatypes agree", compiler.name, wanted.len());
    }
}
