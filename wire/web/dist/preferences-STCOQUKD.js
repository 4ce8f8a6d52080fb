import{a as o}from"./chunk-YOKTOJSG.js";import"./chunk-3UEAJYHE.js";import"./chunk-SLJYOF4I.js";export{o as Preferences};
