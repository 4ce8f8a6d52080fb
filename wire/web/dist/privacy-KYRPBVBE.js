import{a as o}from"./chunk-WULJFLLQ.js";import"./chunk-RXHUNZZF.js";import"./chunk-PWOKPM4Q.js";import"./chunk-XFCPJJJR.js";export{o as Privacy};
