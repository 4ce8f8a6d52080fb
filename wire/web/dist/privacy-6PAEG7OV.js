import{a as o}from"./chunk-3W4IZADD.js";import"./chunk-JIBIK4YA.js";import"./chunk-7LCL5MDI.js";export{o as Privacy};
