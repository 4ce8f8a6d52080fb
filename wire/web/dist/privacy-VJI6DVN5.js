import{a as o}from"./chunk-YYBNNR4O.js";import"./chunk-FVSNIQFO.js";import"./chunk-6UBML4XB.js";export{o as Privacy};
