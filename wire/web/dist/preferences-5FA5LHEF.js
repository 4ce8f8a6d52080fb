import{a as o}from"./chunk-KMBSFEHZ.js";import"./chunk-MKSVHBFJ.js";import"./chunk-ZGBGCCYL.js";import"./chunk-UIWQWYHT.js";export{o as Preferences};
