// What modules of the client ask of a page when they are loaded. Tests that import such modules import this file first.
Object.assign(globalThis, {
  location: new URL("https://chat.example.org/#inbox"),
  addEventListener: () => {},
  document: { documentElement: { dataset: {}, style: {} }, addEventListener: () => {}, querySelector: () => null, execCommand: () => false, cookie: "" },
  localStorage: { getItem: () => null, setItem: () => {}, removeItem: () => {} },
  matchMedia: () => ({ matches: false, addEventListener: () => {} }),
});
