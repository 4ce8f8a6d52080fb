import{a as o}from"./chunk-RCJ5QOEM.js";import"./chunk-HDDYEEFF.js";import"./chunk-AUGD363A.js";import"./chunk-HPKC5SJS.js";export{o as Privacy};
