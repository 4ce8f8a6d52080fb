import{a as o}from"./chunk-EDV7FO2Q.js";import"./chunk-OJP6EBS7.js";import"./chunk-LZLB66BT.js";import"./chunk-M6723UL7.js";export{o as Preferences};
