// playgroundAddress puts code into the address template of a playground (RFC 6570, with the variable "code").
export function playgroundAddress(template: string, code: string): string {
  return template.replace(/\{([+#?&/]?)code\}/g, (_, kind: string) => {
    switch (kind) {
      case "+":
        return encodeURI(code);
      case "?":
      case "&":
        return `${kind}code=${encodeURIComponent(code)}`;
      case "#":
        return "#" + encodeURI(code);
      case "/":
        return "/" + encodeURIComponent(code);
    }
    return encodeURIComponent(code);
  });
}
