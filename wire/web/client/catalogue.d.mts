export function extract(src: string): { messages: string[]; unclear: string[] };
export function forms(icu: string): Record<string, string>;
export function readCatalogue(file: string): Record<string, string>;
