// Exchanges a one-time code for a session cookie. A code in the link's fragment is used at once; browsers never send
// a fragment to a server.
const form = document.getElementById("form");
const input = document.getElementById("code");
const problem = document.getElementById("problem");

async function signIn(code) {
  problem.textContent = "";
  let response;
  try {
    response = await fetch("/sign-in", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ code }),
    });
  } catch {
    problem.textContent = "The gateway does not respond. Is it still running?";
    return;
  }
  if (response.ok) {
    location.replace("/");
    return;
  }
  const said = await response.json().catch(() => ({}));
  problem.textContent = [said.message, said.suggestion].filter(Boolean).join(": ") || "The sign-in failed.";
  input.select();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  signIn(input.value);
});

const code = decodeURIComponent(location.hash.slice(1));
if (/^[A-Za-z0-9]{4}-?[A-Za-z0-9]{4}$/.test(code)) {
  history.replaceState(null, "", "/");
  input.value = code;
  signIn(code);
}
