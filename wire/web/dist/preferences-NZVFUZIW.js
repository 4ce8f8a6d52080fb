import{a as o}from"./chunk-N6WFBD6Q.js";import"./chunk-JIBIK4YA.js";import"./chunk-7LCL5MDI.js";export{o as Preferences};
