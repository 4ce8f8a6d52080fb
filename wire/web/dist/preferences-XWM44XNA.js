import{a as o}from"./chunk-Q4MZQRI6.js";import"./chunk-6BPYWO6N.js";import"./chunk-ZU5UPSDA.js";export{o as Preferences};
