//! Imports and exports of ABI v2.

use host::is_known_component_import;
use wasmparser::component_types::{
    ComponentDefinedType, ComponentEntityType, ComponentFuncType, ComponentValType,
};
use wasmparser::types::TypesRef;
use wasmparser::{Payload, PrimitiveValType};

use super::{invalid, listed, malformed, refuse_unknown};
use crate::failure::LoadError;

const EXPECTED_RUN: &str = "run: async func(request: list<u8>) -> result<list<u8>, string> of the world wasmfn:function/function";

/// What a component imports and exports by name; wasmparser's types can only be asked for a name.
#[derive(Default)]
pub(super) struct TopLevelNames {
    imports: Vec<String>,
    exports: Vec<String>,
}

impl TopLevelNames {
    pub(super) fn collect(&mut self, payload: &Payload<'_>) -> Result<(), LoadError> {
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

pub(super) fn check_component(types: TypesRef<'_>, names: &TopLevelNames) -> Result<(), LoadError> {
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
