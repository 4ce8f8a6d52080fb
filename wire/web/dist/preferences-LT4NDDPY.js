import{a as o}from"./chunk-NDMXJVRV.js";import"./chunk-ANABGZUR.js";import"./chunk-NRQBLXPL.js";export{o as Preferences};
