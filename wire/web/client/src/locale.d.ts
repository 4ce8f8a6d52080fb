// A catalogue of locale, as the table that catalogue.mjs makes of it.
declare module "*.json" {
  export const texts: Record<string, string>;
}
