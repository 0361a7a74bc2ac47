//! Product code of each crate, and the modules, types and paths that its files name.
//!
//! Product is everything compiled without tests and without the feature `fixture`, wherever it is
//! in a file and whatever the file's name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, Item, Lit, Meta, UseTree, Visibility};

use super::tree::root;

/// Path as written, `crate::a::B`.
pub type Segments = Vec<String>;

/// File without the parts that are only compiled for tests.
#[derive(Debug, Default)]
pub struct Product {
    /// Relative to the root of the repository.
    pub path: String,
    /// Module path in its crate: `["a", "b"]` for `crate::a::b`.
    pub module: Segments,
    /// Lines with code: no comments, no blanks; each line of a multi-line text counts.
    pub lines: usize,
    /// Lines of text literals with their numbers, those of clap's help comments included.
    pub texts: Vec<(usize, String)>,
    /// Types that other files may name.
    pub types: Vec<String>,
    /// Paths of at least two segments, in `use` lines, code and macros.
    pub paths: BTreeSet<Segments>,
    /// Names that it re-exports by `pub use`, with their paths.
    pub reexports: BTreeMap<String, Segments>,
    /// Modules that it declares: name, and file if an attribute gives it.
    pub modules: Vec<(String, Option<String>)>,
}

/// Product files of the crate with this root file.
pub fn crate_of(root_file: &str) -> Vec<Product> {
    let mut found = Vec::new();
    let mut left = vec![(PathBuf::from(root_file), Segments::new())];
    while let Some((path, module)) = left.pop() {
        let text = std::fs::read_to_string(root().join(&path)).unwrap();
        let product = Product { path: path.display().to_string(), module, ..parse(&text) };
        for (name, file) in &product.modules {
            let path = file_of(&path, name, file.as_deref());
            left.push((path, [&product.module[..], std::slice::from_ref(name)].concat()));
        }
        found.push(product);
    }
    found
}

/// File of a module that another one declares.
fn file_of(parent: &Path, name: &str, file: Option<&str>) -> PathBuf {
    let dir = parent.parent().unwrap();
    if let Some(file) = file {
        return dir.join(file);
    }
    let stem = parent.file_stem().unwrap().to_str().unwrap();
    let dir = if ["lib", "main", "mod"].contains(&stem) { dir.to_owned() } else { dir.join(stem) };
    let flat = dir.join(format!("{name}.rs"));
    if root().join(&flat).exists() { flat } else { dir.join(name).join("mod.rs") }
}

/// Product part of a file's text.
pub fn parse(text: &str) -> Product {
    let mut file = syn::parse_file(text).unwrap();
    let mut product = Product::default();
    WithoutTests { keeps_help: true }.visit_file_mut(&mut file);
    texts_of(quote::ToTokens::to_token_stream(&file), &mut product.texts);
    WithoutTests { keeps_help: false }.visit_file_mut(&mut file);
    file.items.retain(|item| match item {
        Item::Use(reexport) if !matches!(reexport.vis, Visibility::Inherited) => {
            names_of(&reexport.tree, &mut Vec::new(), &mut product.reexports);
            false
        }
        _ => true,
    });
    for item in &file.items {
        match item {
            Item::Mod(module) if module.content.is_none() => {
                product.modules.push((module.ident.to_string(), path_attribute(&module.attrs)));
            }
            _ => product.types.extend(public_type(item)),
        }
    }
    let mut lines = BTreeSet::new();
    for item in file.items {
        let tokens = quote::ToTokens::into_token_stream(item);
        lines_of(tokens.clone(), &mut lines);
        paths_of(tokens, &[], &mut product.paths);
    }
    product.lines = lines.len();
    product
}

/// Removes code that is only compiled for tests, and documentation: all of it, or all but clap's
/// help.
struct WithoutTests {
    keeps_help: bool,
}

impl VisitMut for WithoutTests {
    fn visit_file_mut(&mut self, file: &mut syn::File) {
        file.items.retain(|item| !for_tests(item));
        visit_mut::visit_file_mut(self, file);
    }

    fn visit_item_mod_mut(&mut self, module: &mut syn::ItemMod) {
        module.content.iter_mut().for_each(|(_, items)| items.retain(|item| !for_tests(item)));
        visit_mut::visit_item_mod_mut(self, module);
    }

    fn visit_item_impl_mut(&mut self, item: &mut syn::ItemImpl) {
        item.items.retain(|item| !for_tests(item));
        visit_mut::visit_item_impl_mut(self, item);
    }

    fn visit_item_struct_mut(&mut self, item: &mut syn::ItemStruct) {
        if !(self.keeps_help && has_help(&item.attrs)) {
            visit_mut::visit_item_struct_mut(self, item);
        }
    }

    fn visit_item_enum_mut(&mut self, item: &mut syn::ItemEnum) {
        if !(self.keeps_help && has_help(&item.attrs)) {
            visit_mut::visit_item_enum_mut(self, item);
        }
    }

    fn visit_attributes_mut(&mut self, attributes: &mut Vec<Attribute>) {
        attributes.retain(|attribute| !attribute.path().is_ident("doc"));
    }
}

/// True if these attributes exclude an item from the product.
fn for_tests(item: &impl quote::ToTokens) -> bool {
    let tests = ["test", "cfg(test)", "cfg(any(test,feature=\"fixture\"))", "cfg(feature=\"fixture\")"];
    let mut tokens = item.to_token_stream().into_iter();
    while let (Some(TokenTree::Punct(hash)), Some(TokenTree::Group(attribute))) =
        (tokens.next(), tokens.next())
    {
        let text = attribute.stream().to_string().replace(char::is_whitespace, "");
        if hash.as_char() != '#' {
            return false;
        }
        if tests.contains(&text.as_str()) {
            return true;
        }
    }
    false
}

/// True if clap makes help of the comments of a type with these attributes.
fn has_help(attributes: &[Attribute]) -> bool {
    let derives = attributes.iter().filter(|attribute| attribute.path().is_ident("derive"));
    let is_claps = |name: &str| ["Parser", "Args", "Subcommand", "ValueEnum"].contains(&name);
    derives
        .filter_map(|attribute| attribute.meta.require_list().ok())
        .any(|list| list.tokens.clone().into_iter().any(|token| is_claps(&token.to_string())))
}

fn texts_of(tokens: TokenStream, texts: &mut Vec<(usize, String)>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => texts_of(group.stream(), texts),
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                if text.ends_with(['"', '#']) {
                    let first = literal.span().start().line;
                    texts.extend(text.lines().enumerate().map(|(at, line)| (first + at, line.to_owned())));
                }
            }
            _ => {}
        }
    }
}

fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    let named = attributes.iter().find(|attribute| attribute.path().is_ident("path"))?;
    let Meta::NameValue(pair) = &named.meta else { return None };
    match &pair.value {
        syn::Expr::Lit(literal) => match &literal.lit {
            Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

fn public_type(item: &Item) -> Option<String> {
    let (visibility, name) = match item {
        Item::Struct(item) => (&item.vis, &item.ident),
        Item::Enum(item) => (&item.vis, &item.ident),
        Item::Trait(item) => (&item.vis, &item.ident),
        Item::Type(item) => (&item.vis, &item.ident),
        Item::Union(item) => (&item.vis, &item.ident),
        _ => return None,
    };
    (!matches!(visibility, Visibility::Inherited)).then(|| name.to_string())
}

fn names_of(tree: &UseTree, prefix: &mut Segments, names: &mut BTreeMap<String, Segments>) {
    let whole = |name: &syn::Ident, prefix: &Segments| [&prefix[..], &[name.to_string()]].concat();
    match tree {
        UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            names_of(&path.tree, prefix, names);
            prefix.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| names_of(tree, prefix, names)),
        UseTree::Name(name) => drop(names.insert(name.ident.to_string(), whole(&name.ident, prefix))),
        UseTree::Rename(name) => drop(names.insert(name.rename.to_string(), whole(&name.ident, prefix))),
        UseTree::Glob(_) => {}
    }
}

fn lines_of(tokens: TokenStream, lines: &mut BTreeSet<usize>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                lines.extend([group.span_open().start().line, group.span_close().end().line]);
                lines_of(group.stream(), lines);
            }
            token => lines.extend(token.span().start().line..=token.span().end().line),
        }
    }
}

/// Paths in tokens, including those of macros; braces after `::` are the group of a `use` line.
fn paths_of(tokens: TokenStream, prefix: &[String], paths: &mut BTreeSet<Segments>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let colon = |at: usize| matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == ':');
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Group(group) => paths_of(group.stream(), &[], paths),
            TokenTree::Ident(name) => {
                let mut path = [prefix, &[name.to_string()]].concat();
                while colon(at + 1) && colon(at + 2) {
                    at += 3;
                    match tokens.get(at) {
                        Some(TokenTree::Ident(name)) => path.push(name.to_string()),
                        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                            paths_of(group.stream(), &path, paths);
                            break;
                        }
                        Some(TokenTree::Punct(star)) if star.as_char() == '*' => path.push("*".into()),
                        _ => break,
                    }
                }
                if path.len() > 1 {
                    paths.insert(path);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

#[test]
fn tests_are_no_product_wherever_they_stand() {
    let product = parse(
        "//! Purpose.\n\n/// Words.\npub struct A;\n#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}\n\
         #[cfg(test)]\npub mod fixture;\nfn f() {\n    // why\n    let text = \"a\n b\";\n    crate::c::D::new()\n}\n\
         impl A {\n    #[cfg(test)]\n    fn g() {}\n}\n#[cfg(any(test, feature = \"fixture\"))]\nmod made;\n",
    );
    assert_eq!((product.lines, &product.types[..]), (8, &["A".to_owned()][..]));
    assert_eq!(product.paths, BTreeSet::from([["crate", "c", "D", "new"].map(String::from).to_vec()]));
    assert!(product.modules.is_empty());
}

#[test]
fn every_way_to_name_a_path_is_seen() {
    let product = parse(
        "use super::{a, b::{c, D as E}};\npub use f::G as H;\nmod i;\n#[path = \"x/j.rs\"]\nmod j;\n\
         fn k() { html! { (l::m(1)) } n.o::<P>(); }\n",
    );
    let has = |path: &str| product.paths.contains(&path.split("::").map(String::from).collect::<Segments>());
    assert!(has("super::a") && has("super::b::c") && has("super::b::D") && has("l::m"), "{product:?}");
    assert_eq!(product.reexports["H"], ["f", "G"]);
    assert_eq!(product.modules, [("i".into(), None), ("j".into(), Some("x/j.rs".into()))]);
}
