import{a as o}from"./chunk-X52ZX2C2.js";import"./chunk-JEE5GVB6.js";import"./chunk-HNC2SEK3.js";import"./chunk-JGPML2EU.js";export{o as Preferences};
