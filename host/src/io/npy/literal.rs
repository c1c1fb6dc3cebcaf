//! The dictionary in a header: a Python literal with three keys. `ndarray-npy` reads it by a grammar of all of Python's literals,
//! whose generator takes 17 s of a processor to compile, a twelfth of everything that the program depends on.

/// What the dictionary says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Literal {
    /// The type as it stands there, with its quotes, or a list where an element has fields.
    pub(super) descriptor: String,
    pub(super) fortran: bool,
    pub(super) shape: Vec<usize>,
}

impl Literal {
    /// Reads the dictionary, white space and a line's end behind it included.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut rest = Rest(text);
        let (mut descriptor, mut fortran, mut shape) = (None, None, None);
        rest.expect("{")?;
        while !rest.take("}") {
            let key = rest.quoted()?;
            rest.expect(":")?;
            match unquoted(key) {
                Some("descr") => descriptor = Some(rest.descriptor()?.to_owned()),
                Some("fortran_order") => fortran = Some(rest.boolean()?),
                Some("shape") => shape = Some(rest.shape()?),
                _ => return Err(format!("the key {key} is unknown")),
            }
            if !rest.take(",") {
                rest.expect("}")?;
                break;
            }
        }
        match (descriptor, fortran, shape, rest.0.trim()) {
            (Some(descriptor), Some(fortran), Some(shape), "") => Ok(Literal {
                descriptor,
                fortran,
                shape,
            }),
            (None, ..) => Err("the key 'descr' is missing".into()),
            (_, None, ..) => Err("the key 'fortran_order' is missing".into()),
            (_, _, None, _) => Err("the key 'shape' is missing".into()),
            _ => Err("something stands behind the dictionary".into()),
        }
    }

    /// The name of the type, such as `<f8`; none where an element has fields.
    pub(super) fn name(&self) -> Option<&str> {
        unquoted(&self.descriptor)
    }
}

/// Python's text of the dictionary.
impl std::fmt::Display for Literal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lengths: Vec<String> = self.shape.iter().map(usize::to_string).collect();
        // A tuple of one needs its comma.
        let comma = if lengths.len() == 1 { "," } else { "" };
        let (descriptor, shape) = (&self.descriptor, lengths.join(", "));
        let order = if self.fortran { "True" } else { "False" };
        write!(
            f,
            "{{'descr': {descriptor}, 'fortran_order': {order}, 'shape': ({shape}{comma})}}"
        )
    }
}

/// What is not read yet.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn take(&mut self, token: &str) -> bool {
        let text = self.0.trim_start();
        let behind = text.strip_prefix(token);
        self.0 = behind.unwrap_or(text);
        behind.is_some()
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        match self.take(token) {
            true => Ok(()),
            false => Err(format!("`{token}` is missing")),
        }
    }

    /// The first bytes of the rest.
    fn split(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.0.split_at(bytes);
        self.0 = rest;
        taken
    }

    /// A text with its quotes.
    fn quoted(&mut self) -> Result<&'a str, String> {
        self.0 = self.0.trim_start();
        let quote = self.0.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let quote = quote.ok_or("a text in quotes is missing")?;
        match self.0[1..].find(quote) {
            Some(length) => Ok(self.split(length + 2)),
            None => Err("a text has no closing quote".into()),
        }
    }

    /// A text, or a list of fields with everything in it.
    fn descriptor(&mut self) -> Result<&'a str, String> {
        self.0 = self.0.trim_start();
        if !self.0.starts_with('[') {
            return self.quoted();
        }
        let (mut depth, mut quote) = (0_usize, None);
        for (at, letter) in self.0.char_indices() {
            match (quote, letter) {
                (Some(open), _) if open == letter => quote = None,
                (Some(_), _) => {}
                (None, '\'' | '"') => quote = Some(letter),
                (None, '[' | '(' | '{') => depth += 1,
                (None, ']' | ')' | '}') => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Ok(self.split(at + 1));
            }
        }
        Err("a list has no closing bracket".into())
    }

    fn boolean(&mut self) -> Result<bool, String> {
        match (self.take("True"), self.take("False")) {
            (true, _) => Ok(true),
            (_, true) => Ok(false),
            _ => Err("'fortran_order' is neither True nor False".into()),
        }
    }

    /// A tuple of lengths.
    fn shape(&mut self) -> Result<Vec<usize>, String> {
        let wrong = || "'shape' is no tuple of lengths that fit memory".to_owned();
        let mut lengths = Vec::new();
        let mut comma = true;
        self.expect("(")?;
        while !self.take(")") {
            let digits = self.0.bytes().take_while(u8::is_ascii_digit).count();
            let length = self.split(digits).parse().map_err(|_| wrong())?;
            if !comma {
                return Err(wrong());
            }
            lengths.push(length);
            comma = self.take(",");
        }
        // One number in parentheses is a number.
        match lengths.len() == 1 && !comma {
            true => Err(wrong()),
            false => Ok(lengths),
        }
    }
}

fn unquoted(text: &str) -> Option<&str> {
    let inside = |quote| text.strip_prefix(quote)?.strip_suffix(quote);
    inside('\'').or_else(|| inside('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_numpy_and_others_write_is_read() {
        let expected = |shape: &[usize], fortran| Literal {
            descriptor: "'<f8'".into(),
            fortran,
            shape: shape.to_vec(),
        };
        for (text, literal) in [
            (
                "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }   \n",
                expected(&[3, 4], false),
            ),
            (
                "{'shape':(3,),'fortran_order':True,'descr':'<f8'}",
                expected(&[3], true),
            ),
            (
                " { 'descr' : '<f8' ,\n'fortran_order': False , 'shape' : ( ) }",
                expected(&[], false),
            ),
        ] {
            assert_eq!(Literal::parse(text).as_ref(), Ok(&literal), "{text}");
            assert_eq!(
                Literal::parse(&literal.to_string()).as_ref(),
                Ok(&literal),
                "{literal}"
            );
        }
        let double = "{\"descr\": \"|b1\", \"fortran_order\": False, \"shape\": (1,)}";
        let double = Literal::parse(double).expect("Python has both quotes");
        assert_eq!(double.name(), Some("|b1"));
    }

    #[test]
    fn fields_have_no_name() {
        let text =
            "{'descr': [('a]', '<f8'), ('b', '<i4', (2,))], 'fortran_order': False, 'shape': (2,)}";
        let literal = Literal::parse(text).expect("as NumPy writes it");
        assert_eq!(literal.name(), None);
        assert_eq!(literal.descriptor, "[('a]', '<f8'), ('b', '<i4', (2,))]");
    }

    #[test]
    fn what_is_no_header_says_why() {
        let of = |descriptor: &str, order: &str, shape: &str| {
            format!("{{'descr': {descriptor}, 'fortran_order': {order}, 'shape': {shape}}}")
        };
        for (text, reason) in [
            (String::new(), "`{` is missing"),
            ("{".into(), "in quotes"),
            ("{'descr'".into(), "`:` is missing"),
            ("{'descr': '<f8'}".into(), "'fortran_order' is missing"),
            (of("'<f8'", "False", "(1, 1)") + "x", "behind"),
            (of("'<f8'", "Maybe", "(1, 1)"), "neither True nor False"),
            (of("<f8", "False", "(1, 1)"), "in quotes"),
            (of("'<f8", "False", "(1, 1)"), "is missing"),
            (of("[('a', '<f8')", "False", "(1,)"), "`}` is missing"),
            ("{'descr': [('a', '<f8')".into(), "closing"),
            (of("'<f8'", "False", "(1)"), "tuple"),
            (of("'<f8'", "False", "(1 1)"), "tuple"),
            (of("'<f8'", "False", "(,)"), "tuple"),
            (of("'<f8'", "False", "(-1, 1)"), "tuple"),
            (of("'<f8'", "False", "(99999999999999999999, 1)"), "tuple"),
            (of("'<f8'", "False", "[1]"), "`(` is missing"),
            ("{'title': '<f8'}".into(), "unknown"),
        ] {
            let error = Literal::parse(&text).expect_err(&text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
