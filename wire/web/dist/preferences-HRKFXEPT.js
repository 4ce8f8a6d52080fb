import{a as o}from"./chunk-L3WCAY3C.js";import"./chunk-R45LNYQC.js";import"./chunk-ZQYSGTBK.js";import"./chunk-7AMPP6T2.js";export{o as Preferences};
