import{a as o}from"./chunk-5IY4FXGG.js";import"./chunk-6BPYWO6N.js";import"./chunk-ZU5UPSDA.js";export{o as Privacy};
