// Applies the chosen colour scheme before the page is drawn. Not a module: modules run too late for that.
(() => {
  const chosen = localStorage.getItem("ullage.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
