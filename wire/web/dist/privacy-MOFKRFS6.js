import{a as o}from"./chunk-GYUJCITQ.js";import"./chunk-3UEAJYHE.js";import"./chunk-SLJYOF4I.js";export{o as Privacy};
