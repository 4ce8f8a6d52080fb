import{a as o}from"./chunk-F262TQJ2.js";import"./chunk-R45LNYQC.js";import"./chunk-ZQYSGTBK.js";import"./chunk-7AMPP6T2.js";export{o as Privacy};
