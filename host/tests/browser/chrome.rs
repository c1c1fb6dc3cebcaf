//! Chromium through its DevTools protocol: messages of JSON on two pipes, each with a zero byte at its end.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use libtest_mimic::Failed;
use serde_json::{Value, json};

/// Its names.
const NAMES: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

/// The browser: `WARPFUSE_BROWSER`, or the first of its names on the PATH.
pub fn find() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("WARPFUSE_BROWSER") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let places = NAMES
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    places.into_iter().find(|place| place.is_file())
}

/// A browser with one empty page.
pub struct Chrome {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: Option<String>,
    messages: u64,
    /// What came between answers.
    events: Vec<Value>,
}

impl Chrome {
    /// Starts the browser. The protocol is on its descriptors 3 and 4, which the shell makes of the pipes.
    pub fn start(browser: &Path) -> Result<Chrome, Failed> {
        let script = r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#;
        let mut process = Command::new("sh")
            .args(["-c", script])
            .arg(browser)
            // Pages are our own, and a sandbox needs rights that containers lack.
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
            ])
            .args(["--remote-debugging-pipe", "about:blank"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let to = process.stdin.take().ok_or("stdin is piped")?;
        let from = BufReader::new(process.stdout.take().ok_or("stdout is piped")?);
        let mut chrome = Chrome {
            process,
            to,
            from,
            session: None,
            messages: 0,
            events: Vec::new(),
        };
        chrome.attach()?;
        Ok(chrome)
    }

    fn attach(&mut self) -> Result<(), Failed> {
        let target = self.call("Target.createTarget", json!({ "url": "about:blank" }))?;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = self.call("Target.attachToTarget", attach)?;
        self.session = session["sessionId"].as_str().map(str::to_owned);
        self.call("Page.enable", json!({}))?;
        self.call("Network.enable", json!({}))?;
        Ok(())
    }

    /// Opens a page in a window of a width, with a colour scheme; all addresses that were requested.
    pub fn open(&mut self, path: &Path, view: (u32, &str)) -> Result<Vec<String>, Failed> {
        let (width, scheme) = view;
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", media)?;
        let metrics =
            json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", metrics)?;
        self.events.clear();
        let url = format!("file://{}", path.display());
        self.call("Page.navigate", json!({ "url": url }))?;
        while !self
            .events
            .iter()
            .any(|event| event["method"] == "Page.loadEventFired")
        {
            let event = self.read()?;
            self.events.push(event);
        }
        let asked = |event: &&Value| event["method"] == "Network.requestWillBeSent";
        let url = |event: &Value| {
            event["params"]["request"]["url"]
                .as_str()
                .map(str::to_owned)
        };
        Ok(self.events.iter().filter(asked).filter_map(url).collect())
    }

    /// The value of an expression.
    pub fn evaluate(&mut self, script: &str) -> Result<Value, Failed> {
        let script = json!({ "expression": script, "returnByValue": true });
        let mut found = self.call("Runtime.evaluate", script)?;
        if found["exceptionDetails"].is_object() {
            return Err(found["exceptionDetails"].to_string().into());
        }
        Ok(found["result"]["value"].take())
    }

    /// The whole page as PNG.
    pub fn picture(&mut self) -> Result<Vec<u8>, Failed> {
        let whole = json!({ "captureBeyondViewport": true, "format": "png" });
        let found = self.call("Page.captureScreenshot", whole)?;
        Ok(of_base64(found["data"].as_str().ok_or("a picture")?))
    }

    fn call(&mut self, method: &str, params: Value) -> Result<Value, Failed> {
        self.messages += 1;
        let mut message = json!({ "id": self.messages, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{message}\0").as_bytes())?;
        loop {
            let mut answer = self.read()?;
            if answer["id"] != self.messages {
                self.events.push(answer);
            } else if answer["error"].is_object() {
                return Err(format!("{method}: {}", answer["error"]).into());
            } else {
                return Ok(answer["result"].take());
            }
        }
    }

    fn read(&mut self) -> Result<Value, Failed> {
        let mut message = Vec::new();
        self.from.read_until(0, &mut message)?;
        match message.pop() {
            Some(0) => Ok(serde_json::from_slice(&message)?),
            _ => Err("the browser has ended".into()),
        }
    }
}

impl Drop for Chrome {
    fn drop(&mut self) {
        self.session = None;
        if self.call("Browser.close", json!({})).is_err() {
            let _ = self.process.kill();
        }
        let _ = self.process.wait();
    }
}

/// Bytes of what the protocol writes as base64; its padding is left out.
fn of_base64(text: &str) -> Vec<u8> {
    let value = |letter: u8| match letter {
        b'A'..=b'Z' => Some(letter - b'A'),
        b'a'..=b'z' => Some(letter - b'a' + 26),
        b'0'..=b'9' => Some(letter - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let values: Vec<u8> = text.bytes().filter_map(value).collect();
    let bytes_of = |four: &[u8]| {
        let bits = four
            .iter()
            .fold(0_u32, |bits, six| bits << 6 | u32::from(*six));
        let bits = bits << (6 * (4 - four.len()) + 8);
        bits.to_be_bytes()[..four.len() - 1].to_vec()
    };
    values.chunks(4).flat_map(bytes_of).collect()
}
