"""A small client of Chromium's DevTools protocol: opens pages from files, looks at them, and types into them."""

import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import websocket

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-extensions", "--hide-scrollbars", "--mute-audio",
    "--allow-file-access-from-files", "--remote-debugging-port=0", "--remote-allow-origins=*",
]


def find_chromium():
    names = [os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"]
    return next((found for name in names if name and (found := shutil.which(name))), None)


class Browser:
    """One browser; every page is a tab of its own."""

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="lookalike-browser-")
        command = [find_chromium(), *FLAGS, f"--user-data-dir={self.directory}", "about:blank"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        # It says where it listens once it does.
        for line in self.process.stderr:
            if "DevTools listening on " in line:
                self.address = line.split("DevTools listening on ")[1].strip()
                break
        else:
            raise RuntimeError("the browser ended before it listened")
        self.socket = websocket.create_connection(self.address, timeout=120)
        self.numbers = itertools.count(1)
        self.events = []

    def close(self):
        try:
            self.call("Browser.close")
        except (OSError, websocket.WebSocketException):
            pass
        self.process.wait(timeout=30)
        self.process.stderr.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def call(self, method, session=None, **parameters):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        self.socket.send(json.dumps(message))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") == number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def wait_for(self, method, session):
        """The next event of this name; those that came before count."""
        while True:
            for at, event in enumerate(self.events):
                if event["method"] == method and event.get("sessionId") == session:
                    return self.events.pop(at)
            self.events.append(json.loads(self.socket.recv()))

    def open(self, path, width=1280, height=900, dark=False):
        return Page(self, Path(path).resolve().as_uri(), width, height, dark)

    def visit(self, address, width=1280, height=900, dark=False, context=None):
        """A page of a server; what it fetches from there is no problem."""
        return Page(self, address, width, height, dark, context, address)

    def person(self):
        """Somebody else, with cookies of their own: a context for `visit`."""
        return self.call("Target.createBrowserContext")["browserContextId"]


class Page:
    """A page at a width, in light or dark."""

    def __init__(self, browser, address, width, height, dark, context=None, server="file:"):
        self.browser = browser
        # What comes from here is the page's own: files, or one server.
        self.own = server if server == "file:" else "/".join(server.split("/")[:3]) + "/"
        whose = {"browserContextId": context} if context else {}
        self.target = browser.call("Target.createTarget", url="about:blank", **whose)["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Log", "Network", "Security"]:
            self.call(f"{domain}.enable")
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.go(address)

    def go(self, address):
        """Goes to another address."""
        # Pages that links led to were loaded, too.
        loaded = lambda event: event["method"] == "Page.loadEventFired" and event.get("sessionId") == self.session
        self.browser.events = [event for event in self.browser.events if not loaded(event)]
        self.call("Page.navigate", url=address)
        self.browser.wait_for("Page.loadEventFired", self.session)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.browser.call("Target.closeTarget", targetId=self.target)

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def run(self, script):
        """What an expression gives in the page."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait_until(self, script, seconds=30):
        # While another page comes in, there is not yet anything to ask.
        script = f"document.readyState === 'complete' && ({script})"
        end = time.monotonic() + seconds
        while True:
            try:
                if self.run(script):
                    return
            except AssertionError as error:
                if "context" not in str(error) and "navigated" not in str(error):
                    raise
            assert time.monotonic() < end, f"still not: {script}"

    def press(self, key):
        for kind in ["keyDown", "keyUp"]:
            text = {"text": {"Enter": "\r"}.get(key, key)} if kind == "keyDown" and (len(key) == 1 or key == "Enter") else {}
            codes = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowUp": 38, "ArrowDown": 40}
            code = {"windowsVirtualKeyCode": codes[key]} if key in codes else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **text, **code)

    def type(self, text):
        """Types into whatever has the focus."""
        self.call("Input.insertText", text=text)

    def problems(self):
        """Errors on the console, violations of the policy, and whatever was fetched from elsewhere."""
        self.run("1")
        found = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            facts = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(facts["exceptionDetails"])
            elif event["method"] == "Runtime.consoleAPICalled" and facts["type"] in ["error", "warning", "assert"]:
                found.append(facts["args"])
            elif event["method"] == "Log.entryAdded" and facts["entry"]["level"] in ["error", "warning"]:
                found.append(facts["entry"])
            elif event["method"] == "Network.requestWillBeSent" and not facts["request"]["url"].startswith(self.own):
                found.append(facts["request"]["url"])
        return found

    def screenshot(self, path, whole=True):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 12000), "scale": 1}
        options = {"captureBeyondViewport": True, "clip": clip} if whole else {}
        data = self.call("Page.captureScreenshot", format="png", **options)["data"]
        Path(path).write_bytes(base64.b64decode(data))
