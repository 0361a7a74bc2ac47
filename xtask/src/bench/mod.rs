pub struct Options;
impl Options {
    pub fn parse(_: &[String]) -> Result<Options, String> {
        Ok(Options)
    }
}
pub fn run(_: &Options) -> Result<(), String> {
    Ok(())
}
