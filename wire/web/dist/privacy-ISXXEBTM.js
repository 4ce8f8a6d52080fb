import{a as o}from"./chunk-VAQFHCS7.js";import"./chunk-475MES5F.js";import"./chunk-5CGIQNE4.js";import"./chunk-NR6TEYRL.js";export{o as Privacy};
