//! How much of everything a module may have.

use wasmparser::{MemoryType, Payload, TableType};

use super::{invalid, malformed};
use crate::failure::LoadError;

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

/// Counts what the validator and the compiler would have to hold.
pub(super) struct Bounds {
    memory_limit_bytes: u64,
    /// Modules and components that are open.
    depth: usize,
    functions: u64,
    parts: u64,
    items: u64,
}

impl Bounds {
    pub(super) fn new(memory_limit_bytes: u64) -> Self {
        Self {
            memory_limit_bytes,
            depth: 0,
            functions: 0,
            parts: 0,
            items: 0,
        }
    }

    /// Modules and components that are open: 1 in the outermost.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    pub(super) fn check(&mut self, payload: &Payload<'_>) -> Result<(), LoadError> {
        match payload {
            Payload::Version { .. } => {
                if self.depth >= MAX_NESTING {
                    return Err(too_many(
                        "nested components",
                        MAX_NESTING as u64 + 1,
                        MAX_NESTING as u64,
                    ));
                }
                self.depth += 1;
                self.parts += 1;
                at_most("nested modules and components", self.parts, MAX_PARTS)
            }
            Payload::End(_) => {
                self.depth = self.depth.saturating_sub(1);
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
