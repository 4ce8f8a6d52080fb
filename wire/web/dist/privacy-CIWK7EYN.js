import{a as o}from"./chunk-YEQRKY2N.js";import"./chunk-A26DZ4BB.js";import"./chunk-S45M3N2T.js";export{o as Privacy};
