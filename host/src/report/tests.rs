//! Pages that were looked at.
