//! Values that are chosen from a list: each has one name, in files, on the command line and over HTTP, and one
//! sentence that explains it.

/// A value of a list, by name.
pub trait Named: Copy + PartialEq + Sized + 'static {
    /// All values, in the order in which they are listed: value, name, explanation.
    const LIST: &'static [(Self, &'static str, &'static str)];

    /// The name of the value.
    #[must_use]
    fn name(self) -> &'static str {
        Self::LIST.iter().find(|row| row.0 == self).map(|row| row.1).expect("the list has every value")
    }

    /// The value of a name.
    #[must_use]
    fn named(name: &str) -> Option<Self> {
        Self::LIST.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// All names, as in "one of a, b, c".
    #[must_use]
    fn one_of() -> String {
        let names: Vec<&str> = Self::LIST.iter().map(|row| row.1).collect();
        format!("one of {}", names.join(", "))
    }
}

/// Declares an enum whose values have names, and perhaps a default.
macro_rules! named {
    (
        $(#[$meta:meta])*
        pub enum $type:ident $(default $default:ident)? {
            $( $(#[doc = $help:literal])+ $variant:ident = $name:literal, )+
        }
    ) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        $(#[$meta])*
        pub enum $type {
            $( $(#[doc = $help])+ #[serde(rename = $name)] $variant, )+
        }

        $(
            impl Default for $type {
                fn default() -> $type {
                    $type::$default
                }
            }
        )?

        impl $crate::names::Named for $type {
            const LIST: &'static [($type, &'static str, &'static str)] =
                &[$( ($type::$variant, $name, concat!($($help),+)), )+];
        }

        impl std::str::FromStr for $type {
            type Err = String;

            fn from_str(name: &str) -> Result<$type, String> {
                use $crate::names::Named;
                $type::named(name).ok_or_else($type::one_of)
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str($crate::names::Named::name(*self))
            }
        }
    };
}

pub(crate) use named;

#[cfg(test)]
mod tests {
    use super::*;

    named! {
        /// Fruit.
        pub enum Fruit default WildStrawberry {
            /// Grows on trees.
            Apple = "apple",
            /// Grows on the ground,
            /// and is red.
            WildStrawberry = "wild-strawberry",
        }
    }

    #[test]
    fn names_are_those_of_the_list_everywhere() {
        assert_eq!(Fruit::WildStrawberry.name(), "wild-strawberry");
        assert_eq!("apple".parse(), Ok(Fruit::Apple));
        assert_eq!(Fruit::default(), Fruit::WildStrawberry);
        assert_eq!("pear".parse::<Fruit>(), Err("one of apple, wild-strawberry".to_owned()));
        assert_eq!(serde_json::to_string(&Fruit::WildStrawberry).unwrap(), "\"wild-strawberry\"");
        assert_eq!(Fruit::LIST[1].2, " Grows on the ground, and is red.");
    }
}
