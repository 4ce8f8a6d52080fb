import{a as o}from"./chunk-W4VBGYP2.js";import"./chunk-PVDCEZG6.js";import"./chunk-4B2Q4GWJ.js";import"./chunk-JM4NAU6W.js";export{o as Preferences};
