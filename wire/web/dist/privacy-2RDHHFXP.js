import{a as o}from"./chunk-A5TUKWC5.js";import"./chunk-7GZT4PAG.js";import"./chunk-HQOLZQTW.js";import"./chunk-LXF7FFQF.js";export{o as Privacy};
