import{a as o}from"./chunk-MJIBP6JB.js";import"./chunk-RXHUNZZF.js";import"./chunk-PWOKPM4Q.js";import"./chunk-XFCPJJJR.js";export{o as Preferences};
