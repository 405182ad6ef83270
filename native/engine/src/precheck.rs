//! What can be said about a module in milliseconds, before anything is compiled: is it one this
//! runtime runs, and is it of a size that the compiler may be given.
//!
//! Function bodies are not validated here; the compiler does that. Both run in the compiler's
//! process: the parser recurses over nested type declarations, and a few kilobytes of those are
//! enough to overflow a stack.

use std::fmt::Write as _;
use std::time::Duration;

use host::{
    CancelToken, Deadline, Output, RunConfig, RunState, is_known_component_import, printable,
};
use wasmparser::component_types::{
    ComponentDefinedType, ComponentEntityType, ComponentFuncType, ComponentValType,
};
use wasmparser::types::{EntityType, TypesRef};
use wasmparser::{
    Encoding, FuncType, MemoryType, Parser, Payload, PrimitiveValType, TableType, ValType,
    ValidPayload, Validator,
};
use wasmtime::{Engine, Linker, Store};

use crate::failure::LoadError;

/// What a refusal lists at most of unknown imports or of exports.
const MAX_NAMES: usize = 5;
const MAX_NAME_BYTES: usize = 80;
const TABLE_ELEMENT_BYTES: u64 = 8;
const WASM_PAGE_BYTES: u64 = 64 << 10;

// Cranelift is super-linear in the size of one body and in its locals; the rest bounds what the
// validator and the compiler hold. Go's largest guests have 100,000 data segments.
const MAX_BODY_BYTES: usize = 4 << 20;
const MAX_LOCALS: u64 = 20_000;
const MAX_FUNCTIONS: u64 = 250_000;
const MAX_TYPES: u64 = 100_000;
const MAX_IMPORTS: u64 = 1_000;
const MAX_EXPORTS: u64 = 10_000;
const MAX_GLOBALS: u64 = 10_000;
const MAX_TABLES: u64 = 100;
const MAX_ELEMENT_SEGMENTS: u64 = 100_000;
const MAX_DATA_SEGMENTS: u64 = 100_000;
const MAX_NESTING: usize = 16;
const MAX_PARTS: u64 = 1_000;
const MAX_COMPONENT_ITEMS: u64 = 100_000;

/// The binary's layer, which decides the ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModuleKind {
    /// ABI v1.
    Core,
    /// ABI v2.
    Component,
}

impl ModuleKind {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Component => "component",
        }
    }

    /// The byte that says it in an artifact.
    pub(crate) fn tag(self) -> u8 {
        match self {
            Self::Core => 1,
            Self::Component => 2,
        }
    }

    pub(crate) fn from_tag(tag: u8) -> Option<Self> {
        match tag {
            1 => Some(Self::Core),
            2 => Some(Self::Component),
            _ => None,
        }
    }

    /// The inverse of [`ModuleKind::name`].
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "core" => Some(Self::Core),
            "component" => Some(Self::Component),
            _ => None,
        }
    }
}

/// What the pre-check learnt of a module it let pass.
#[derive(Debug, PartialEq, Eq)]
pub struct Precheck {
    pub kind: ModuleKind,
}

/// Checks kind, counts, exports, imports and their types. May overflow the stack: never call it
/// in a process that must live.
///
/// # Errors
///
/// [`LoadError::Invalid`] that says what was found and what was expected.
pub fn precheck(
    bytes: &[u8],
    engine: &Engine,
    memory_limit_bytes: u64,
) -> Result<Precheck, LoadError> {
    if !bytes.starts_with(b"\0asm") {
        return Err(invalid(format!(
            "expected a WebAssembly module or component, got {}",
            describe_other(bytes)
        )));
    }
    let mut bounds = Bounds {
        memory_limit_bytes,
        open: Vec::new(),
        functions: 0,
        parts: 0,
        items: 0,
    };
    let mut validator = Validator::new_with_features(engine.get_wasm_features());
    let mut kind = ModuleKind::Core;
    let mut names = TopLevelNames::default();
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.map_err(|error| malformed(&error))?;
        if let Payload::Version { num, encoding, .. } = &payload {
            check_version(*num, *encoding, bounds.open.is_empty())?;
            if bounds.open.is_empty() && *encoding == Encoding::Component {
                kind = ModuleKind::Component;
            }
        }
        // Counts first: the validator allocates by them.
        bounds.check(&payload)?;
        if bounds.open.len() == 1 {
            names.collect(&payload)?;
        }
        match validator
            .payload(&payload)
            .map_err(|error| malformed(&error))?
        {
            ValidPayload::End(types) if bounds.open.is_empty() => {
                match kind {
                    ModuleKind::Core => check_core(types.as_ref(), &mut CoreHost::new(engine)?)?,
                    ModuleKind::Component => check_component(types.as_ref(), &names)?,
                }
                return Ok(Precheck { kind });
            }
            _ => {}
        }
    }
    Err(invalid("the file ends before its module does".to_owned()))
}

fn invalid(text: String) -> LoadError {
    LoadError::Invalid(text)
}

fn malformed(error: &wasmparser::BinaryReaderError) -> LoadError {
    invalid(format!(
        "not a valid WebAssembly module: {} (at offset {:#x})",
        printable(error.message(), 400),
        error.offset()
    ))
}

fn describe_other(bytes: &[u8]) -> String {
    let text = bytes.trim_ascii_start();
    if bytes.is_empty() {
        return "an empty file".to_owned();
    }
    if bytes.starts_with(b"\x7fELF") {
        return "precompiled native code, which is never run: supply the WebAssembly it was made from"
            .to_owned();
    }
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return "a gzip archive".to_owned();
    }
    if bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        return "a zstd archive".to_owned();
    }
    if text.starts_with(b"<") {
        return format!("an HTML or XML page beginning {}", quote(text));
    }
    if text.starts_with(b"(module") || text.starts_with(b"(component") {
        return "WebAssembly text (WAT): assemble it first".to_owned();
    }
    format!("{} bytes beginning {}", bytes.len(), quote(bytes))
}

fn quote(bytes: &[u8]) -> String {
    let head = &bytes[..bytes.len().min(24)];
    format!("\"{}\"", printable(&String::from_utf8_lossy(head), 60))
}

fn check_version(num: u16, encoding: Encoding, top: bool) -> Result<(), LoadError> {
    let expected = match encoding {
        Encoding::Module => 1,
        Encoding::Component => 13,
    };
    if num == expected || !top {
        return Ok(());
    }
    Err(invalid(format!(
        "expected binary format version {expected}, got {num}"
    )))
}

/// Counts what the validator and the compiler would have to hold.
struct Bounds {
    memory_limit_bytes: u64,
    /// The modules and components that are open, outermost first.
    open: Vec<Encoding>,
    functions: u64,
    parts: u64,
    items: u64,
}

impl Bounds {
    fn check(&mut self, payload: &Payload<'_>) -> Result<(), LoadError> {
        match payload {
            Payload::Version { encoding, .. } => {
                if self.open.len() >= MAX_NESTING {
                    return Err(too_many(
                        "nested components",
                        MAX_NESTING as u64 + 1,
                        MAX_NESTING as u64,
                    ));
                }
                self.open.push(*encoding);
                self.parts += 1;
                at_most("nested modules and components", self.parts, MAX_PARTS)
            }
            Payload::End(_) => {
                self.open.pop();
                Ok(())
            }
            Payload::TypeSection(section) => at_most("types", section.count().into(), MAX_TYPES),
            Payload::ImportSection(section) => {
                at_most("imports", section.count().into(), MAX_IMPORTS)
            }
            Payload::FunctionSection(section) => {
                self.functions += u64::from(section.count());
                at_most("functions", self.functions, MAX_FUNCTIONS)
            }
            Payload::TableSection(section) => {
                at_most("tables", section.count().into(), MAX_TABLES)?;
                section.clone().into_iter().try_for_each(|table| {
                    self.check_table(&table.map_err(|error| malformed(&error))?.ty)
                })
            }
            Payload::MemorySection(section) => {
                if section.count() > 1 {
                    return Err(invalid(format!(
                        "the multi-memory proposal is not supported: expected at most 1 memory in a module, got {}",
                        section.count()
                    )));
                }
                section.clone().into_iter().try_for_each(|memory| {
                    self.check_memory(&memory.map_err(|error| malformed(&error))?)
                })
            }
            Payload::GlobalSection(section) => {
                at_most("globals", section.count().into(), MAX_GLOBALS)
            }
            Payload::ExportSection(section) => {
                at_most("exports", section.count().into(), MAX_EXPORTS)
            }
            Payload::ElementSection(section) => at_most(
                "element segments",
                section.count().into(),
                MAX_ELEMENT_SEGMENTS,
            ),
            Payload::DataSection(section) => {
                at_most("data segments", section.count().into(), MAX_DATA_SEGMENTS)
            }
            Payload::CodeSectionEntry(body) => check_body(body),
            Payload::InstanceSection(section) => self.add_items(section.count()),
            Payload::CoreTypeSection(section) => self.add_items(section.count()),
            Payload::ComponentInstanceSection(section) => self.add_items(section.count()),
            Payload::ComponentAliasSection(section) => self.add_items(section.count()),
            Payload::ComponentTypeSection(section) => self.add_items(section.count()),
            Payload::ComponentCanonicalSection(section) => self.add_items(section.count()),
            Payload::ComponentImportSection(section) => self.add_items(section.count()),
            Payload::ComponentExportSection(section) => self.add_items(section.count()),
            _ => Ok(()),
        }
    }

    fn add_items(&mut self, count: u32) -> Result<(), LoadError> {
        self.items += u64::from(count);
        at_most("component definitions", self.items, MAX_COMPONENT_ITEMS)
    }

    fn check_memory(&self, memory: &MemoryType) -> Result<(), LoadError> {
        let bytes = memory.initial.saturating_mul(WASM_PAGE_BYTES);
        self.fits("memory", bytes)
    }

    fn check_table(&self, table: &TableType) -> Result<(), LoadError> {
        self.fits("table", table.initial.saturating_mul(TABLE_ELEMENT_BYTES))
    }

    fn fits(&self, what: &str, bytes: u64) -> Result<(), LoadError> {
        if bytes <= self.memory_limit_bytes {
            return Ok(());
        }
        Err(invalid(format!(
            "its initial {what} takes {bytes} bytes, more than the runtime's --module-memory-limit of {} bytes",
            self.memory_limit_bytes
        )))
    }
}

fn check_body(body: &wasmparser::FunctionBody<'_>) -> Result<(), LoadError> {
    let bytes = body.as_bytes().len();
    if bytes > MAX_BODY_BYTES {
        return Err(too_many(
            "bytes in one function",
            bytes as u64,
            MAX_BODY_BYTES as u64,
        ));
    }
    let locals = body
        .get_locals_reader()
        .map_err(|error| malformed(&error))?;
    let mut total = 0_u64;
    for local in locals {
        let (count, _) = local.map_err(|error| malformed(&error))?;
        total += u64::from(count);
        at_most("locals in one function", total, MAX_LOCALS)?;
    }
    Ok(())
}

fn at_most(what: &str, found: u64, limit: u64) -> Result<(), LoadError> {
    if found > limit {
        return Err(too_many(what, found, limit));
    }
    Ok(())
}

fn too_many(what: &str, found: u64, limit: u64) -> LoadError {
    invalid(format!(
        "too many {what}: got {found}, expected at most {limit}"
    ))
}

/// The host functions of ABI v1 and their types, asked of the linker itself.
struct CoreHost {
    linker: Linker<RunState>,
    store: Store<RunState>,
}

impl CoreHost {
    fn new(engine: &Engine) -> Result<Self, LoadError> {
        let linker = host::core_linker(engine)
            .map_err(|error| LoadError::Io(format!("cannot link the host: {error:#}")))?;
        let state = RunState::new(RunConfig {
            memory_limit_bytes: 0,
            deadline: Deadline::new(Duration::ZERO, None, CancelToken::default()),
            output: Output::default(),
        });
        Ok(Self {
            linker,
            store: Store::new(engine, state),
        })
    }

    /// `None` when there is no such function.
    fn signature(&mut self, module: &str, name: &str) -> Option<String> {
        let function = self
            .linker
            .get(&mut self.store, module, name)
            .ok()?
            .into_func()?;
        let ty = function.ty(&self.store);
        let list = |types: &mut dyn Iterator<Item = wasmtime::ValType>| {
            types.map(|ty| ty.to_string()).collect::<Vec<_>>()
        };
        Some(signature_text(
            &list(&mut ty.params()),
            &list(&mut ty.results()),
        ))
    }
}

fn check_core(types: TypesRef<'_>, host: &mut CoreHost) -> Result<(), LoadError> {
    let mut unknown = Vec::new();
    for (module, name, ty) in types.core_imports().into_iter().flatten() {
        let (EntityType::Func(id), Some(expected)) = (ty, host.signature(module, name)) else {
            unknown.push(format!("{module}.{name} ({})", entity_kind(&ty)));
            continue;
        };
        let found = signature(types[id].composite_type.unwrap_func());
        if found != expected {
            return Err(invalid(format!(
                "import {module}.{name}: expected a function {expected}, got a function {found}"
            )));
        }
    }
    refuse_unknown(
        &unknown,
        "wasi_snapshot_preview1 functions, wasmfn.log and wasmfn.http",
    )?;

    let exports: Vec<_> = types.core_exports().into_iter().flatten().collect();
    let find = |name: &str| {
        exports
            .iter()
            .find(|(found, _)| *found == name)
            .map(|(_, ty)| *ty)
    };
    let i32s = [ValType::I32; 2];
    let functions: [(&str, &[ValType], &[ValType], bool); 3] = [
        ("wasmfn_run", &i32s, &[ValType::I64], true),
        ("wasmfn_alloc", &i32s[..1], &[ValType::I32], true),
        ("_initialize", &[], &[], false),
    ];
    for (name, params, results, required) in functions {
        let expected = FuncType::new(params.iter().copied(), results.iter().copied());
        let found = match find(name) {
            None if required => "no such export".to_owned(),
            None => continue,
            Some(EntityType::Func(id)) => {
                let found = types[id].composite_type.unwrap_func();
                if *found == expected {
                    continue;
                }
                format!("a function {}", signature(found))
            }
            Some(other) => format!("a {}", entity_kind(&other)),
        };
        return Err(invalid(format!(
            "export {name}: expected a function {} (ABI v1), got {found}",
            signature(&expected)
        )));
    }
    match find("memory") {
        Some(EntityType::Memory(_)) => Ok(()),
        None => Err(invalid(
            "export memory: expected a memory (ABI v1), got no such export".to_owned(),
        )),
        Some(other) => Err(invalid(format!(
            "export memory: expected a memory (ABI v1), got a {}",
            entity_kind(&other)
        ))),
    }
}

fn refuse_unknown(unknown: &[String], known: &str) -> Result<(), LoadError> {
    if unknown.is_empty() {
        return Ok(());
    }
    Err(invalid(format!(
        "unknown import {}: this runtime provides {known}",
        listed(unknown)
    )))
}

/// At most [`MAX_NAMES`] of `names`, sorted and printable.
fn listed(names: &[String]) -> String {
    let mut sorted: Vec<_> = names
        .iter()
        .map(|name| printable(name, MAX_NAME_BYTES))
        .collect();
    sorted.sort();
    let more = sorted.len().saturating_sub(MAX_NAMES);
    sorted.truncate(MAX_NAMES);
    let mut text = sorted.join(", ");
    if more > 0 {
        let _ = write!(text, " and {more} more");
    }
    text
}

fn entity_kind(ty: &EntityType) -> &'static str {
    match ty {
        EntityType::Func(_) | EntityType::FuncExact(_) => "function",
        EntityType::Table(_) => "table",
        EntityType::Memory(_) => "memory",
        EntityType::Global(_) => "global",
        EntityType::Tag(_) => "tag",
    }
}

fn signature(ty: &FuncType) -> String {
    let list = |types: &[ValType]| types.iter().map(ToString::to_string).collect::<Vec<_>>();
    signature_text(&list(ty.params()), &list(ty.results()))
}

/// At most 1,000 parameters and results, by the validator.
fn signature_text(params: &[String], results: &[String]) -> String {
    let shown = |types: &[String]| {
        let text = types
            .iter()
            .take(16)
            .cloned()
            .collect::<Vec<_>>()
            .join(", ");
        match types.len().saturating_sub(16) {
            0 => text,
            more => format!("{text} and {more} more"),
        }
    };
    let results = if results.is_empty() {
        "()".to_owned()
    } else {
        shown(results)
    };
    format!("({}) -> {results}", shown(params))
}

const EXPECTED_RUN: &str = "run: async func(request: list<u8>) -> result<list<u8>, string> of the world wasmfn:function/function";

/// What a component imports and exports by name; wasmparser's types can only be asked for a name.
#[derive(Default)]
struct TopLevelNames {
    imports: Vec<String>,
    exports: Vec<String>,
}

impl TopLevelNames {
    fn collect(&mut self, payload: &Payload<'_>) -> Result<(), LoadError> {
        match payload {
            Payload::ComponentImportSection(section) => {
                for import in section.clone() {
                    let import = import.map_err(|error| malformed(&error))?;
                    self.imports.push(import.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in section.clone() {
                    let export = export.map_err(|error| malformed(&error))?;
                    self.exports.push(export.name.name.to_owned());
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn check_component(types: TypesRef<'_>, names: &TopLevelNames) -> Result<(), LoadError> {
    let unknown: Vec<_> = names
        .imports
        .iter()
        .filter(|name| !is_known_component_import(name))
        .cloned()
        .collect();
    refuse_unknown(
        &unknown,
        "log of the world wasmfn:function/function and the interfaces of WASI 0.2 and 0.3",
    )?;

    if let Some(item) = types.component_item_for_import("log") {
        let known = match item.ty {
            ComponentEntityType::Func(id) => is_log(&types[id], types),
            _ => false,
        };
        if !known {
            return Err(invalid(format!(
                "import log: expected {EXPECTED_LOG}, got another type"
            )));
        }
    }
    let found = match types.component_item_for_export("run").map(|item| item.ty) {
        Some(ComponentEntityType::Func(id)) => {
            let function = &types[id];
            if is_run(function, types) {
                return Ok(());
            }
            "a function of another type".to_owned()
        }
        Some(_) => "an export named run that is no function".to_owned(),
        None => {
            if names.exports.is_empty() {
                "a component without exports".to_owned()
            } else {
                format!("a component that exports {}", listed(&names.exports))
            }
        }
    };
    Err(invalid(format!(
        "expected {EXPECTED_RUN} (ABI v2), got {found}"
    )))
}

const EXPECTED_LOG: &str = "log: func(level: log-level, msg: string, kv: list<tuple<string, string>>) of the world wasmfn:function/function";

/// By kinds only: earlier drafts of the world had fewer levels.
fn is_log(function: &ComponentFuncType, types: TypesRef<'_>) -> bool {
    let string =
        |ty: &ComponentValType| matches!(ty, ComponentValType::Primitive(PrimitiveValType::String));
    let defined = |ty: &ComponentValType| match ty {
        ComponentValType::Type(id) => Some(&types[*id]),
        ComponentValType::Primitive(_) => None,
    };
    let [(_, level), (_, message), (_, pairs)] = &function.params[..] else {
        return false;
    };
    let pairs = match defined(pairs) {
        Some(ComponentDefinedType::List { element, .. }) => matches!(
            defined(element),
            Some(ComponentDefinedType::Tuple(pair)) if pair.types.len() == 2 && pair.types.iter().all(string)
        ),
        _ => false,
    };
    let level = matches!(defined(level), Some(ComponentDefinedType::Enum(_)));
    level && string(message) && pairs && function.result.is_none() && !function.async_
}

fn is_run(function: &ComponentFuncType, types: TypesRef<'_>) -> bool {
    let bytes = |ty: &ComponentValType| match ty {
        ComponentValType::Type(id) => matches!(
            &types[*id],
            ComponentDefinedType::List {
                element: ComponentValType::Primitive(PrimitiveValType::U8),
                ..
            }
        ),
        ComponentValType::Primitive(_) => false,
    };
    let params = matches!(&function.params[..], [(_, ty)] if bytes(ty));
    let result = match &function.result {
        Some(ComponentValType::Type(id)) => match &types[*id] {
            ComponentDefinedType::Result {
                ok: Some(ok), err, ..
            } => {
                bytes(ok)
                    && matches!(
                        err,
                        Some(ComponentValType::Primitive(PrimitiveValType::String))
                    )
            }
            _ => false,
        },
        _ => false,
    };
    params && result
}
