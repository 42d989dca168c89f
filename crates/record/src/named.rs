//! Enumerations that serialise as strings.
//!
//! An unknown string, of a newer version, is kept and shown unchanged; its meaning is not guessed.
//! The default is the empty string.

/// Defines an enumeration of words, with `Other` for words of newer versions. With `from TYPE` it
/// also converts from an enumeration TYPE that has the same variants.
macro_rules! open_enum {
    (
        $(#[$meta:meta])*
        $name:ident {
            $($(#[$of_variant:meta])* $variant:ident = $word:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$of_variant])* $variant,)+
            /// A word of a newer version.
            Other(String),
        }

        impl $name {
            /// The word, as in JSON.
            #[must_use]
            pub const fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)+
                    Self::Other(word) => word.as_str(),
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::Other(String::new())
            }
        }

        impl From<String> for $name {
            fn from(word: String) -> Self {
                match word.as_str() {
                    $($word => Self::$variant,)+
                    _ => Self::Other(word),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.pad(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        #[cfg(test)]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $(#[$meta])*
                #[derive(schemars::JsonSchema)]
                #[expect(dead_code, reason = "only its schema is asked for")]
                enum Known { $($(#[$of_variant])* #[schemars(rename = $word)] $variant,)+ }
                $crate::schema_tests::open(Known::json_schema(generator))
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <String as serde::Deserialize>::deserialize(deserializer).map(Self::from)
            }
        }
    };
    (
        $(#[$meta:meta])*
        $name:ident from $source:ty {
            $($(#[$of_variant:meta])* $variant:ident = $word:literal,)+
        }
    ) => {
        open_enum! {
            $(#[$meta])*
            $name { $($(#[$of_variant])* $variant = $word,)+ }
        }

        impl From<$source> for $name {
            fn from(source: $source) -> Self {
                match source {
                    $(<$source>::$variant => Self::$variant,)+
                }
            }
        }
    };
}

pub(crate) use open_enum;

#[cfg(test)]
#[expect(unreachable_pub, reason = "the macro makes public types")]
mod tests {
    open_enum! {
        /// Ways to another floor.
        Way {
            /// By stairs.
            Stairs = "stairs",
            /// By lift.
            Lift = "lift",
        }
    }

    enum Path {
        Up,
        Down,
    }

    open_enum! {
        /// Paths.
        PathWord from Path {
            /// Upwards.
            Up = "up",
            /// Downwards.
            Down = "down",
        }
    }

    #[test]
    fn variants_convert_from_an_enum_with_the_same_variants() {
        let words = [Path::Up, Path::Down].map(PathWord::from);
        assert_eq!(words, [PathWord::Up, PathWord::Down]);
    }

    #[track_caller]
    fn check_round_trip(json: &str, way: Way) {
        assert_eq!(serde_json::from_str::<Way>(json).unwrap(), way);
        assert_eq!(serde_json::to_string(&way).unwrap(), json);
        assert_eq!(format!("\"{way}\""), json);
    }

    #[test]
    fn unknown_words_round_trip_unchanged() {
        check_round_trip("\"stairs\"", Way::Stairs);
        check_round_trip("\"lift\"", Way::Lift);
        check_round_trip("\"rope\"", Way::Other("rope".to_owned()));
        assert!(serde_json::from_str::<Way>("3").is_err());
    }
}
