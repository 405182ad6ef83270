//! The two kinds of module.

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
