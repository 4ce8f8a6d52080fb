// Asks a device for a passkey when a form with one is sent, or at once where the form says so, and sends the answer.
(() => {
  'use strict';

  function bytes(text) {
    const plain = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
    return Uint8Array.from(plain, (c) => c.charCodeAt(0));
  }

  function text(buffer) {
    const plain = String.fromCharCode(...new Uint8Array(buffer));
    return btoa(plain).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
  }

  // decoded returns the options of a function with bytes where the server has sent text.
  function decoded(options) {
    const { publicKey } = options;
    publicKey.challenge = bytes(publicKey.challenge);
    if (publicKey.user) publicKey.user.id = bytes(publicKey.user.id);
    for (const list of [publicKey.allowCredentials, publicKey.excludeCredentials]) {
      for (const one of list || []) one.id = bytes(one.id);
    }
    return { publicKey };
  }

  // encoded returns the answer of a device as text.
  function encoded(answer) {
    const response = {};
    for (const name of ['clientDataJSON', 'attestationObject', 'authenticatorData', 'signature', 'userHandle']) {
      if (answer.response[name]) response[name] = text(answer.response[name]);
    }
    return JSON.stringify({ id: answer.id, rawId: text(answer.rawId), type: answer.type, response,
      clientExtensionResults: {} });
  }

  async function ask(form) {
    const failed = form.querySelector('[role=alert]');
    failed.hidden = true;
    try {
      const answer = await navigator.credentials[form.dataset.do](decoded(JSON.parse(form.dataset.options)));
      form.elements.passkey.value = encoded(answer);
    } catch {
      failed.hidden = false; // the user has declined, or there is no passkey
      return;
    }
    form.submit();
  }

  for (const form of document.querySelectorAll('form[data-do]')) {
    form.addEventListener('submit', (e) => {
      e.preventDefault();
      ask(form);
    });
    if ('auto' in form.dataset) ask(form);
  }
})();
