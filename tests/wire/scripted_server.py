"""A small MCP server for tests, in the standard library alone, that does whatever it is told to.

Run as `python scripted_server.py ERA [JSON]`. ERA is `modern`, `legacy`, `both`, `deaf` (legacy, and silent to what it
does not know), or `mortal` (legacy, and dies of it). The JSON says what it lists and what it declares. Its tools are
the methods of `Tools`, which misbehave in all the ways that real servers do.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time

MODERN = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"


class Refused(Exception):
    def __init__(self, code, message, data=None):
        super().__init__(message)
        self.error = {"code": code, "message": message} | ({} if data is None else {"data": data})


class Toy:
    def __init__(self, era, script):
        self.era = era
        self.script = script
        self.lock = threading.Lock()
        self.answers = {}
        self.cancelled = []
        self.listening = []
        self.seen = []
        self.folders = {"nobody": "told"}
        self.tools = Tools(self)

    def write(self, text):
        with self.lock:
            sys.stdout.write(text + "\n")
            sys.stdout.flush()

    def send(self, **message):
        self.write(json.dumps({"jsonrpc": "2.0", **message}))

    def notify(self, method, **params):
        self.send(method=method, params=params)

    def ask(self, method, params):
        number = f"q{len(self.answers)}"
        self.answers[number] = queue.Queue()
        self.send(id=number, method=method, params=params)
        return self.answers[number].get(timeout=10)

    def run(self):
        for text in self.script.get("preamble", []):
            self.write(text)
        time.sleep(self.script.get("slow_start", 0))
        for line in sys.stdin:
            message = json.loads(line)
            if "method" not in message:
                self.answered(message)
            elif "id" not in message:
                self.noticed(message)
            elif message["method"] == "tools/call" or self.script.get("lists_by_roots"):
                threading.Thread(target=self.answer, args=(message,), daemon=True).start()
            else:
                self.answer(message)

    def answered(self, message):
        if message["id"] in self.answers:
            self.answers[message["id"]].put(message)

    def noticed(self, message):
        if message["method"] == "notifications/cancelled":
            self.cancelled.append(message["params"]["requestId"])
        elif message["method"] in self.script.get("asks_roots_at", []):
            threading.Thread(target=self.ask_roots, daemon=True).start()

    def ask_roots(self):
        """Asks for the client's folders, and takes the question back where the script says after how long."""
        number = f"q{len(self.answers)}"
        if "roots_patience" in self.script:
            threading.Timer(
                self.script["roots_patience"], self.notify, ["notifications/cancelled"], {"requestId": number}
            ).start()
        self.folders = self.ask("roots/list", {})

    def answer(self, message):
        params = message.get("params", {})
        self.seen.append({"method": message["method"], "params": params})
        try:
            result = self.result(message["id"], message["method"], params)
        except Refused as refusal:
            self.send(id=message["id"], error=refusal.error)
        else:
            if result is not None:
                self.send(id=message["id"], result=result)

    def result(self, number, method, params):
        if method == "server/discover":
            return self.discover()
        if method == "initialize":
            return self.initialize(params)
        if self.era == "modern" and PREFIX + "protocolVersion" not in params.get("_meta", {}):
            raise Refused(-32602, "no protocolVersion")
        if method in self.script.get("errors", {}):
            raise Refused(*self.script["errors"][method])
        if method in self.script.get("results", {}):
            return self.paged(self.script["results"][method], params)
        if method == "tools/list":
            if self.script.get("lists_by_roots"):
                self.ask_roots()
            many = [tool(f"t{one}") for one in range(self.script.get("many", 0))]
            return {"tools": [*many, *(tool(name) for name in dir(self.tools) if not name.startswith("_"))]}
        if method == "tools/call":
            return self.call(number, params)
        if method == "subscriptions/listen":
            return self.listen(number, params)
        return self.unknown(method)

    def paged(self, pages, params):
        if not isinstance(pages, list):
            return pages
        at = int(params.get("cursor", "0"))
        following = self.script.get("cursor", str(at + 1))
        return pages[at] | ({"nextCursor": following} if at + 1 < len(pages) else {})

    def call(self, number, params):
        handler = getattr(self.tools, params["name"], None)
        if handler is None:
            raise Refused(-32602, f"Unknown tool: {params['name']}", {"tool": params["name"]})
        return handler(params, number)

    def discover(self):
        if self.era in ("modern", "both"):
            return {
                "resultType": "complete",
                "supportedVersions": self.script.get("versions", [MODERN]),
                "capabilities": self.script.get("capabilities", {"tools": {}}),
                "instructions": self.script.get("instructions", "be kind"),
                "_meta": {PREFIX + "serverInfo": {"name": "toy", "version": "1"}},
            }
        return self.unknown("server/discover")

    def initialize(self, params):
        if self.era == "modern":
            raise Refused(-32022, "modern only", {"supported": [MODERN]})
        return {
            "protocolVersion": self.script.get("version", params["protocolVersion"]),
            "capabilities": self.script.get("capabilities", {"tools": {}}),
            "serverInfo": {"name": "toy", "version": "1", "title": "A toy"},
            "instructions": self.script.get("instructions", "be kind"),
        }

    def unknown(self, method):
        if self.era == "mortal":
            os._exit(3)
        if self.era == "deaf":
            return
        raise Refused(-32601, f"Method not found: {method}")

    def listen(self, number, params):
        self.listening.append(params["notifications"])
        meta = {PREFIX + "subscriptionId": number}
        self.notify("notifications/subscriptions/acknowledged", notifications=params["notifications"], _meta=meta)


def tool(name):
    return {"name": name, "description": f"Does {name}.", "inputSchema": {"type": "object"}}


def text(value):
    said = value if isinstance(value, str) else json.dumps(value)
    return {"resultType": "complete", "content": [{"type": "text", "text": said}]}


class Tools:
    def __init__(self, toy):
        self._toy = toy

    def echo(self, params, number):
        return text(params["arguments"].get("text", ""))

    def give(self, params, number):
        """Answers with the very result it was given."""
        return params["arguments"]["result"]

    def folders(self, params, number):
        """What it was told of the client's folders by now."""
        return text({key: self._toy.folders[key] for key in self._toy.folders if key in ("result", "error", "nobody")})

    def seen(self, params, number):
        """Every request so far, as it came."""
        return text(self._toy.seen)

    def cancelled(self, params, number):
        return text(self._toy.cancelled)

    def listening(self, params, number):
        return text(self._toy.listening)

    def silent(self, params, number):
        return None

    def slow(self, params, number):
        time.sleep(params["arguments"]["seconds"])
        return text("at last")

    def progress(self, params, number):
        token = params["_meta"]["progressToken"]
        for step in range(params["arguments"].get("steps", 3)):
            self._toy.notify(
                "notifications/progress", progressToken=token, progress=step, total=3, message=f"step {step}"
            )
            time.sleep(params["arguments"].get("pause", 0))
        return text("done")

    def ask(self, params, number):
        arguments = params["arguments"]
        method = arguments.get("method", "elicitation/create")
        answer = self._toy.ask(method, arguments.get("params", {"message": "ok?"}))
        return text({key: answer[key] for key in ("result", "error") if key in answer})

    def withdraw(self, params, number):
        """Asks, takes the question back, and answers."""
        self._toy.send(id="withdrawn", method="elicitation/create", params={"message": "ok?"})
        time.sleep(0.1)
        self._toy.notify("notifications/cancelled", requestId="withdrawn")
        return text("never mind")

    def abandon(self, params, number):
        """Asks, and answers the call without waiting for what it asked."""
        method = params["arguments"].get("method", "elicitation/create")
        self._toy.send(id="abandoned", method=method, params={"message": "ok?"})
        time.sleep(0.1)
        return text("never mind")

    def needs(self, params, number):
        if "inputResponses" not in params:
            requests = {"who": {"method": "elicitation/create", "params": {"message": "who?"}}}
            return {"resultType": "input_required", "inputRequests": requests, "requestState": "sealed"}
        return text({"answers": params["inputResponses"], "state": params["requestState"]})

    def log(self, params, number):
        for one in range(params["arguments"].get("count", 1)):
            self._toy.notify("notifications/message", level="info", data=f"line {one}")
        return text("logged")

    def change(self, params, number):
        for one in params["arguments"]["notifications"]:
            self._toy.notify(one["method"], **one.get("params", {}))
        return text("changed")

    def say(self, params, number):
        """Writes lines of any kind; NUMBER in one stands for that of the call."""
        for one in params["arguments"]["lines"]:
            self._toy.write(one.replace("NUMBER", str(number)))
        return text("said")

    def flood(self, params, number):
        arguments = params["arguments"]
        stream = sys.stderr if arguments["to"] == "stderr" else sys.stdout
        for _ in range(arguments["megabytes"]):
            with self._toy.lock:
                stream.write(("x" * 1023 + arguments.get("end", "\n")) * 1024)
                stream.flush()
        return text("flooded")

    def complain(self, params, number):
        sys.stderr.write(params["arguments"]["text"] + "\n")
        sys.stderr.flush()
        return text("complained")

    def die(self, params, number):
        sys.stderr.write("about to die\n")
        sys.stderr.flush()
        os.kill(os.getpid(), signal.SIGKILL)

    def leave(self, params, number):
        """Answers, and is gone."""
        self._toy.send(id=number, result=text("goodbye"))
        os._exit(4)

    def breed(self, params, number):
        """Starts a child that outlives it."""
        code = "import time; print('up', flush=True); time.sleep(600)"
        child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        return text(str(child.pid))


if __name__ == "__main__":
    Toy(sys.argv[1], json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}).run()
