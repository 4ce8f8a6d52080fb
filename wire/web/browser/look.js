// Checks of a view: the rules of axe-core, the edges of the window, and the room for fingers.
import fs from 'node:fs';
import { createRequire } from 'node:module';

const AXE = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const TARGET = 24; // pixels that a finger needs at least (WCAG 2.2, 2.5.8)

// axe returns the violations that axe-core finds. Rules are those of its option runOnly, or all.
export async function axe(page, rules) {
  if (!await page.evaluate(() => 'axe' in globalThis)) await page.evaluate(AXE);
  return page.evaluate(async (runOnly) => {
    // Addresses of views are fragments: axe-core takes links outside of the window for skip links.
    const rules = { 'skip-link': { enabled: false }, 'target-size': { enabled: true } };
    const options = { resultTypes: ['violations'], rules, ...(runOnly ? { runOnly } : {}) };
    const { violations } = await globalThis.axe.run(document, options);
    return violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.html).join(' ').slice(0, 500)}`);
  }, rules);
}

// room returns the faults of a view in its window: the page is wider than the window, a control is partly outside of it,
// covered by something else, or too small for a finger. Only the topmost window is looked at, because the others
// cannot be used. Links in a sentence may be as small as its letters. For a mouse, smallest is 0.
export function room(page, smallest = TARGET) {
  return page.evaluate(async (smallest) => {
    await new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); });
    const found = [];
    const wide = document.documentElement.scrollWidth - innerWidth;
    if (wide > 0) found.push(`the page is ${wide} pixels too wide`);
    const popover = document.querySelector('.popover');
    const column = innerWidth < 760 && (document.querySelector('.left.open') ?? document.querySelector('.right'));
    const top = popover ?? [...document.querySelectorAll('dialog[open]')].at(-1) ?? (column || document.body);
    const name = (el) => `<${el.tagName.toLowerCase()} ${el.getAttribute('class') ?? ''}> "${
      (el.getAttribute('aria-label') ?? el.textContent ?? '').trim().slice(0, 40)}"`;
    const inSentence = (el) => el.matches('a, .link, .user-mention, .user-group-mention')
      && getComputedStyle(el).display === 'inline' && !!el.closest('p, li, dd, small, td, .dialog-text, .content, .quiet');
    // clipped returns the part of the window in which an element can be seen, without what its parents cut off.
    const clip = (el) => {
      const box = { left: 0, top: 0, right: innerWidth, bottom: innerHeight, scrolls: false };
      for (let p = el.parentElement; p; p = p.parentElement) {
        const style = getComputedStyle(p);
        if (!/(auto|scroll|hidden|clip)/.test(style.overflow + style.overflowX + style.overflowY)) continue;
        const r = p.getBoundingClientRect();
        if (style.overflowX !== 'visible') {
          box.left = Math.max(box.left, r.left);
          box.right = Math.min(box.right, r.right);
          if (/(auto|scroll)/.test(style.overflowX) && p.scrollWidth > p.clientWidth) box.scrolls = true;
        }
        if (style.overflowY !== 'visible') {
          box.top = Math.max(box.top, r.top);
          box.bottom = Math.min(box.bottom, r.bottom);
        }
        if (style.position === 'fixed') break;
      }
      return box;
    };
    const controls = top.querySelectorAll(['a[href]', 'button', 'input:not([type=hidden])', 'select', 'textarea',
      'summary', '[role=button]', '[role=option]', '[role=menuitem]', '[role=checkbox]', '[role=switch]'].join());
    for (const el of controls) {
      if (!el.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true })) continue;
      if (el.closest('.skip, .visually-hidden, [aria-hidden=true], [inert]')) continue;
      if (el.matches(':disabled')) continue;
      const label = el.matches('input[type=checkbox], input[type=radio]') ? el.closest('label') : null;
      const r = (label ?? el).getBoundingClientRect();
      if (r.width === 0 || r.height === 0) continue;
      const box = clip(el);
      if (r.bottom <= box.top || r.top >= box.bottom) continue; // scrolled away
      if (!box.scrolls && (r.left < box.left - 1 || r.right > box.right + 1)) {
        found.push(`${name(el)} is cut off: from ${Math.round(r.left)} to ${Math.round(r.right)} of ${
          Math.round(box.left)} to ${Math.round(box.right)}`);
      }
      if (!inSentence(el) && (r.width < smallest - 0.5 || r.height < smallest - 0.5)) {
        found.push(`${name(el)} is ${r.width.toFixed(1)} by ${r.height.toFixed(1)} pixels`);
      }
      const [x, y] = [(r.left + r.right) / 2, (r.top + r.bottom) / 2];
      if (x <= box.left || x >= box.right || y <= box.top || y >= box.bottom) continue;
      const at = document.elementFromPoint(x, y);
      const own = label ?? el;
      if (at && !own.contains(at) && !at.contains(own) && !(el.labels && [...el.labels].some((l) => l.contains(at)))) {
        if (inSentence(el)) continue; // broken over two lines
        if (at.closest('.to-end, .message-tools, .completions, .search, .picker-list, .calendar')) continue; // they float
        found.push(`${name(el)} is covered by ${name(at)}`);
      }
    }
    return [...new Set(found)];
  }, smallest);
}
