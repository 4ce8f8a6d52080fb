import{a as o}from"./chunk-BC4ZONJ6.js";import"./chunk-FVSNIQFO.js";import"./chunk-6UBML4XB.js";export{o as Preferences};
